# SPDX-License-Identifier: MIT
#
# Checkpoints of the bash driver: the state as the text that a shell which executes bash anew hands on, and what its
# process would keep by itself besides. The agent holds the text. A new shell goes on with it in the place of one that
# was killed, or that exec has replaced.

__sandbox_park() {
        builtin local __sandbox_text __sandbox_failed __sandbox_descriptor
        __sandbox_failed=1
        for ((__sandbox_descriptor = 3; __sandbox_descriptor < 256; __sandbox_descriptor++)); do
                ! __sandbox_is_open "$__sandbox_descriptor" || builtin break
        done
        [[ -v __sandbox_environment ]] || builtin mapfile -t -d '' __sandbox_environment </proc/self/environ
        __sandbox_shopt=$BASHOPTS
        __sandbox_traps=$(builtin trap -p)
        __sandbox_text=$(__sandbox_write_copy "$((__sandbox_descriptor < 256 ? 16 : 0))")
        builtin local LC_ALL=C                  # lengths are of bytes
        if ((${#__sandbox_text} > 1048576)); then
                __sandbox_failed=4
        elif [[ ${__sandbox_text: -20} == __sandbox_state=kept ]]; then
                builtin printf '\ncopy %s %d\n%s' "${__sandbox_operation##* }" "${#__sandbox_text}" \
                        "$__sandbox_text" >&77 || __sandbox_end
                __sandbox_failed=0
        fi
        __sandbox_operated "$__sandbox_failed"
} 2>/dev/null

# In a fork of the shell. What a new process does not have is told when it goes on; the argument is what is known of
# that.
__sandbox_write_copy() {
        builtin unset -v __sandbox_text __sandbox_failed __sandbox_descriptor __sandbox_gone
        builtin enable alias cd declare jobs pushd pwd shopt ulimit umask unset
        builtin local __sandbox_name
        __sandbox_name=${PWD-.}
        [[ $__sandbox_name -ef . ]] || __sandbox_name=$(builtin pwd -P)
        builtin printf '__sandbox_gone=0\nbuiltin cd -- %q || ((__sandbox_gone |= 8))\nbuiltin ' "$__sandbox_name"
        builtin umask -p
        for __sandbox_name in c d e f i l m n q r s t u v x; do
                builtin printf 'builtin ulimit -S -%s ' "$__sandbox_name"
                builtin ulimit -S "-$__sandbox_name"
                builtin printf 'builtin ulimit -H -%s ' "$__sandbox_name"
                builtin ulimit -H "-$__sandbox_name"
        done
        builtin printf '[[ ! "'
        builtin jobs -p
        builtin printf '" ]] || ((__sandbox_gone |= 2))\n'
        builtin printf '((__sandbox_gone |= %d))\n' "$1"
        builtin unset -v __sandbox_name PWD     # the new shell knows where it is
        __sandbox_write_state
}

# Whether the user has opened it: those of the shell itself and of the driver are close-on-exec.
__sandbox_is_open() {
        builtin local REPLY
        [[ -e /proc/$$/fdinfo/$1 ]] || builtin return 1
        while builtin read -r && [[ $REPLY != flags:* ]]; do
                builtin :
        done <"/proc/$$/fdinfo/$1"
        ! ((${REPLY##*[!0-7]} & 02000000))
}

# The next shell says that it is done.
__sandbox_wake() {
        builtin mapfile -t -d '' __sandbox_argv </proc/self/cmdline
        __sandbox_replace "${__sandbox_argv[@]::7}" '' 0 <(builtin printf %s "$__sandbox_code") "$__sandbox_operation"
} 2>/dev/null
