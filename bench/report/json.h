/* JSON as nrg-bench writes and reads it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_REPORT_JSON_H
#define NRG_BENCH_REPORT_JSON_H

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace bench
{

struct Json;
using Array = std::vector<Json>;
using Object = std::vector<std::pair<std::string, Json>>; /* in the order of the text */

struct Json {
    std::variant<std::nullptr_t, bool, double, std::string, Array, Object> value = nullptr;

    Json() = default;
    template <class T> Json(T of) : value(std::move(of)) {}
    Json(const char *text) : value(std::string(text)) {}

    template <class T> const T *as() const { return std::get_if<T>(&value); } /* NULL: it is of another kind */

    /* A null where this is no object or has no such key; of text, `otherwise` where there is none. */
    const Json &operator[](const char *key) const;
    std::string text(const char *otherwise = "") const;
};

/* Numbers have four digits, whole ones all; null where one is not finite. Elements that are arrays or objects begin a line. No
 * text of it can end the script element of a page that holds it. */
std::string json_text(const Json &json);

/* Throws the number of the byte, a size_t, that is wrong. */
Json json_read(const std::string &text);

} // namespace bench

#endif
