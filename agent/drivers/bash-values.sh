# SPDX-License-Identifier: MIT
#
# What turns of bash give back besides text: results. Part of bash.sh.

# Gives back a value: JSON, as the argument or from standard input, of which the last one counts. It is left in a
# file: a subshell has no other way to the shell, and nobody writes half a report to the control socket.
sandbox-result() {
        { builtin local -; builtin set +ekx; } 2>/dev/null
        builtin local REPLY TMOUT=
        builtin local LC_ALL=C                  # more than the agent takes is cut here
        REPLY=$*                                # not by builtin local, which splits words
        (($# > 0)) || builtin read -r -N 300000
        if [[ ! $REPLY ]]; then
                builtin printf 'sandbox-result: give JSON, as an argument or from standard input\n' >&2
                builtin return 2
        fi
        builtin printf '%s\n%s' "${__sandbox_token-}" "$REPLY" >|"/dev/shm/.sandbox-result-$$"
}

# What sandbox-result has left. What a background job of an earlier turn has left is not sent.
__sandbox_send_result() {
        builtin local REPLY __sandbox_text=
        builtin local LC_ALL=C                  # a length is in bytes
        if { builtin read -r && [[ $REPLY == "$__sandbox_reported" ]] &&
                { builtin read -r -N 300000 __sandbox_text || builtin :; }; } <"/dev/shm/.sandbox-result-$$"; then
                builtin printf '\nvalue %s result %d\n%s' \
                        "$__sandbox_reported" "${#__sandbox_text}" "$__sandbox_text" >&77
        fi
        builtin : >|"/dev/shm/.sandbox-result-$$"
}
