# SPDX-License-Identifier: MIT
#
# The last part of the bash driver: the start, of the first shell and of those that it executes in its place. It
# follows bash.sh.

readonly -f __sandbox_next __sandbox_mend __sandbox_report __sandbox_receive __sandbox_recall __sandbox_end \
        __sandbox_send_result __sandbox_operate __sandbox_park __sandbox_write_copy __sandbox_is_open \
        __sandbox_wake __sandbox_apart __sandbox_learn __sandbox_operated \
        __sandbox_signal __sandbox_leave __sandbox_resume __sandbox_replace __sandbox_write \
        __sandbox_write_state __sandbox_write_lines __sandbox_resumed __sandbox_wrap_trap \
        __sandbox_set_traps __sandbox_name_signal __sandbox_bad_signal __sandbox_list_traps

# Copies descriptor 0 to a number with close-on-exec, for which bash has no words: only the copies that it
# makes itself, of what a redirection hides, have it, and copies of such a copy.
__sandbox_keep() {
        local __sandbox_copy=10
        while [[ -e /dev/fd/$__sandbox_copy ]]; do
                ((++__sandbox_copy))
        done
        { eval "exec $1<&$__sandbox_copy"; } <&-
}

if (($# == 1)); then
        exec 75>&2 2>/dev/null 0<&3 3<&-
fi
__sandbox_keep 77
exec 0<&1
__sandbox_keep 78
exec 0<&75 75<&-
__sandbox_keep 79
exec 0</dev/null 1>/dev/null
__sandbox_keep 76
unset -f __sandbox_keep

# Evaluated at top level, after a call that sets $? to what the code is to see, and that is in a condition.
printf -v __sandbox_loop %s 'until __sandbox_next "$?" "$@"; do ' \
        'if __sandbox_recall; then \builtin eval -- "$__sandbox_code" <&76 >&78 2>&79; ' \
        'else \builtin eval -- "$__sandbox_code" <&76 >&78 2>&79; fi; ' \
        'done; \builtin eval -- "$__sandbox_loop"'
printf -v __sandbox_code %s '{ __sandbox_leave "$?" "$@"; } 2>/dev/null; ' \
        'if __sandbox_recall; then \builtin eval -- "${__sandbox_actions[EXIT]-}" <&76 >&78 2>&79; ' \
        'else \builtin eval -- "${__sandbox_actions[EXIT]-}" <&76 >&78 2>&79; fi; ' \
        '__sandbox_resume'
declare -A __sandbox_actions=() __sandbox_guards=(
        [EXIT]=$__sandbox_code
        # The eval of the whole code, whose last argument $_ is, fails once more when its last command does.
        [ERR]='case $_ in "${__sandbox_code-}") ;; *) \builtin eval -- "${__sandbox_actions[ERR]}"; esac'
        [RETURN]='case ${FUNCNAME-} in trap | __sandbox_*) ;;
                *) \builtin eval -- "${__sandbox_actions[RETURN]}"; esac'
        [HUP]='__sandbox_signal 129' [INT]='__sandbox_signal 130' [TERM]='__sandbox_signal 143'
        [USR1]='__sandbox_signal 138' [USR2]='__sandbox_signal 140'
)
printf -v '__sandbox_guards[DEBUG]' %s 'case "${FUNCNAME-} $BASH_COMMAND" in "trap "* | *__sandbox_*) ;; ' \
        '*) \builtin eval -- "${__sandbox_actions[DEBUG]}"; esac'
readonly __sandbox_loop __sandbox_guards
__sandbox_wrap_trap
for __sandbox_name in HUP INT USR1 USR2 TERM; do
        builtin trap -- "${__sandbox_guards[$__sandbox_name]}" "$__sandbox_name"
done
unset -v __sandbox_name BASH_EXECUTION_STRING

if (($# == 1)); then
        __sandbox_token= __sandbox_status=0
        set --
        # As in an interactive shell: a failing exec, which drops the EXIT trap, must not be the end.
        shopt -s expand_aliases execfail
        printf 'ready\n' >&77
else
        __sandbox_token=$2 __sandbox_status=$3 __sandbox_state=lost __sandbox_descriptor=${4##*/}
        __sandbox_operation=${5-}
        set --
        builtin source /dev/fd/"$__sandbox_descriptor" || builtin :
        __sandbox_resumed || builtin :
fi
