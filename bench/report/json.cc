/* JSON.
 *
 * SPDX-License-Identifier: MIT */
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "report.h"

namespace bench
{

const Json &Json::operator[](const char *key) const
{
    static const Json nothing;
    if (const Object *object = as<Object>())
        for (const auto &[name, member] : *object)
            if (name == key)
                return member;
    return nothing;
}

std::string Json::text(const char *otherwise) const { return as<std::string>() ? *as<std::string>() : otherwise; }

/* ---- writing ---- */

/* "<" as a number as well, for </script>. */
static std::string quoted(const std::string &text)
{
    std::string out = "\"";
    for (const char c : text)
        out += (unsigned char)c < 0x20 || c == '"' || c == '\\' || c == '<' ? bench::text("\\u%04x", c) : std::string(1, c);
    return out + '"';
}

static std::string number(double value)
{
    if (!std::isfinite(value))
        return "null";
    return text(value == rint(value) && fabs(value) < 0x1p53 ? "%.0f" : "%.4g", value);
}

static void write(std::string &out, const Json &json)
{
    bool first = true;
    const auto element = [&](const Json &of, const std::string &key) {
        out += first ? "" : ",";
        out += !key.empty() && first ? "" : of.as<Array>() || of.as<Object>() ? "\n" : "";
        out += key;
        write(out, of);
        first = false;
    };
    if (const std::string *of = json.as<std::string>())
        out += quoted(*of);
    else if (const double *value = json.as<double>())
        out += number(*value);
    else if (const Array *array = json.as<Array>()) {
        out += '[';
        for (const Json &of : *array)
            element(of, "");
        out += ']';
    } else if (const Object *object = json.as<Object>()) {
        out += '{';
        for (const auto &[key, of] : *object)
            element(of, quoted(key) + ':');
        out += '}';
    } else
        out += json.as<bool>() ? *json.as<bool>() ? "true" : "false" : "null";
}

std::string json_text(const Json &json)
{
    std::string out;
    write(out, json);
    return out;
}

/* ---- reading ---- */

/* Reports are four deep; a file of brackets is not to overrun the stack. */
enum { DEPTH_MAX = 64 };

class Reader
{
  public:
    explicit Reader(const std::string &text) : start_(text.c_str()), at_(start_) {}

    Json all()
    {
        Json json = value(0);
        if (space())
            wrong();
        return json;
    }

  private:
    [[noreturn]] void wrong() const { throw(size_t)(at_ - start_); }

    /* The next byte that is none; 0 at the end. */
    char space()
    {
        at_ += strspn(at_, " \t\r\n");
        return *at_;
    }

    void expect(char c)
    {
        if (space() != c)
            wrong();
        at_++;
    }

    bool skip(const char *word)
    {
        const size_t length = strlen(word);
        const bool is_there = strncmp(at_, word, length) == 0;
        at_ += is_there ? length : 0;
        return is_there;
    }

    /* Four digits of \u: what is not ASCII, which reports write as it is, as '?'. */
    char code_point()
    {
        if (strspn(at_, "0123456789abcdefABCDEF") < 4)
            wrong();
        const unsigned long code = std::stoul(std::string(at_, 4), nullptr, 16);
        at_ += 4;
        return code && code < 0x80 ? (char)code : '?';
    }

    std::string string()
    {
        static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
        std::string text;
        for (expect('"'); *at_ != '"';) {
            if (!*at_)
                wrong();
            if (*at_ != '\\') {
                text += *at_++;
                continue;
            }
            const char c = *++at_;
            if (c == 'u') {
                at_++;
                text += code_point();
            } else if (c && strchr(escapes, c)) {
                text += meant[strchr(escapes, c) - escapes];
                at_++;
            } else
                wrong();
        }
        at_++;
        return text;
    }

    template <class Of> void members(char close, Of member)
    {
        at_++;
        for (bool first = true; space() != close; first = false) {
            if (!first)
                expect(',');
            member();
        }
        at_++;
    }

    Json value(int depth)
    {
        const char c = space();
        if (depth > DEPTH_MAX)
            wrong();
        if (c == '{') {
            Object object;
            members('}', [&] {
                std::string key = string();
                expect(':');
                object.emplace_back(std::move(key), value(depth + 1));
            });
            return object;
        }
        if (c == '[') {
            Array array;
            members(']', [&] { array.push_back(value(depth + 1)); });
            return array;
        }
        if (c == '"')
            return string();
        if (skip("null"))
            return nullptr;
        if (skip("true"))
            return true;
        if (skip("false"))
            return false;
        char *end;
        const double number = strtod(at_, &end);
        if (!c || !strchr("-0123456789", c) || end == at_)
            wrong();
        at_ = end;
        return number;
    }

    const char *start_, *at_;
};

Json json_read(const std::string &text) { return Reader(text).all(); }

} // namespace bench
