# shellcheck shell=bash
# Builds Check, which the tests link against, from the sources of its package, with other compilers and flags than the
# distribution's. Source it after common.sh; do not run it.

# shellcheck source=scripts/own-apt.sh disable=SC2154 # root is of common.sh
source "$root/scripts/own-apt.sh"

# own_check DIR ARCH WHAT CONFIGURE-ARGUMENT ...: fetches and compiles it into DIR/root, in 10 s; WHAT names it. A second run with
# the same package, compiler and flags does nothing. What configure cannot find out is in the environment, and the compiler in CC.
own_check() {
    local dir=$1 arch=$2 what=$3 stamp
    shift 3
    # shellcheck disable=SC2153 # of the one who calls
    stamp="$ID $VERSION_CODENAME: check by $("$CC" --version | head -n 1) ${CFLAGS-} in $dir"
    if fetched "$dir" "$stamp"; then
        return 0
    fi
    say "fetching and compiling $what: check"
    set_up_apt "$dir" deb-src "$arch"
    # As its authors published it. The distribution's patches are for its packaging, and change the library's name.
    download "$dir" source --download-only check
    mkdir "$dir/apt/check"
    tar -xf "$dir"/apt/archives/check_*.orig.tar.* -C "$dir/apt/check" --strip-components=1
    # without subunit, which is another library
    (
        cd "$dir/apt/check" || exit
        quietly "$dir/apt/configure.log" ./configure "$@" --prefix="$dir/root" \
            --disable-shared --disable-subunit --disable-dependency-tracking
        quietly "$dir/apt/make.log" make -j"$(nproc)" install SUBDIRS="lib src"
    )
    rm -rf "$dir/apt/check"
    done_with "$dir" "$stamp"
}
