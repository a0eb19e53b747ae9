# SPDX-License-Identifier: MIT
#
# The seldom part of the bash driver, continued: list and show. No user code runs, since values are shown as
# declare prints them.

# Sets __sandbox_type and __sandbox_size.
__sandbox_describe() {
        builtin local __sandbox_flags __sandbox_value LC_ALL=C
        __sandbox_flags=${__sandbox_variables[$1]%% *}
        __sandbox_size=null
        case $__sandbox_flags in
        *n*) __sandbox_type=nameref ;;
        *A* | *a*)
                builtin eval "__sandbox_size=\${#$1[@]}"
                __sandbox_type="array of $__sandbox_size"
                [[ $__sandbox_flags != *A* ]] || __sandbox_type="associative $__sandbox_type"
                __sandbox_value=${__sandbox_variables[$1]#* }
                __sandbox_size=${#__sandbox_value} ;;
        *)
                __sandbox_type=string
                [[ $__sandbox_flags != *i* ]] || __sandbox_type=integer
                __sandbox_value=${!1-}
                __sandbox_size=${#__sandbox_value} ;;
        esac
        [[ $__sandbox_flags != *x* ]] || __sandbox_type="exported $__sandbox_type"
        [[ $__sandbox_flags != *r* ]] || __sandbox_type="readonly $__sandbox_type"
}

# Sets __sandbox_object. The arguments: name, the longest text, whether it is to be said that there is more.
__sandbox_form_variable() {
        builtin local __sandbox_type __sandbox_size __sandbox_text
        __sandbox_text=${__sandbox_variables[$1]#* }
        __sandbox_describe "$1"
        __sandbox_form "$@"
}

__sandbox_form_function() {
        builtin local __sandbox_type __sandbox_size __sandbox_text
        __sandbox_text=$(builtin declare -f "$1")
        __sandbox_type=function __sandbox_size=${#__sandbox_text}
        __sandbox_form "$@"
}

__sandbox_form() {
        builtin local __sandbox_json __sandbox_name __sandbox_truncated
        __sandbox_truncated=
        if [[ $3 ]]; then
                __sandbox_truncated=',"truncated":false'
                ((${#__sandbox_text} <= $2)) || __sandbox_truncated=',"truncated":true'
        fi
        __sandbox_quote "${1:0:200}"
        __sandbox_name=$__sandbox_json
        __sandbox_quote "${__sandbox_text:0:$2}"
        builtin printf -v __sandbox_object '{"name":%s,"type":"%s","size":%s,"text":%s%s}' "$__sandbox_name" \
                "$__sandbox_type" "$__sandbox_size" "$__sandbox_json" "$__sandbox_truncated"
}

# What is always there is not listed while it is as ever.
__sandbox_survey_user() {
        builtin local __sandbox_text __sandbox_name
        __sandbox_text=$(builtin declare -p LC_ALL)
        __sandbox_sane_locale
        __sandbox_survey
        builtin unset -v '__sandbox_variables[LC_ALL]'
        if [[ $__sandbox_text == 'declare -'*=* && ! -v __sandbox_inherited[LC_ALL] ]]; then
                __sandbox_text=${__sandbox_text#declare -}
                __sandbox_variables[LC_ALL]="${__sandbox_text%% *} ${__sandbox_text#*=}"
        fi
        builtin unset -v '__sandbox_variables[OLDPWD]' '__sandbox_variables[SECONDS]'
        for __sandbox_name in 'IFS $'"' \\t\\n'" 'PS4 "+ "' 'OPTERR "1"' 'OPTIND "1"'; do
                [[ ${__sandbox_variables[${__sandbox_name%% *}]-} != *" ${__sandbox_name#* }" ]] ||
                        builtin unset -v "__sandbox_variables[${__sandbox_name%% *}]"
        done
        __sandbox_list_functions
}

# Merges the two sorted lists of names.
__sandbox_list() {
        builtin local __sandbox_name __sandbox_comma __sandbox_left __sandbox_room __sandbox_at
        __sandbox_survey_user
        __sandbox_comma='[' __sandbox_left=500 __sandbox_room=200000 __sandbox_at=0
        for __sandbox_name in "${__sandbox_order[@]}"; do
                while [[ ${__sandbox_names[__sandbox_at]-} && ${__sandbox_names[__sandbox_at]} < $__sandbox_name ]]; do
                        __sandbox_list_one __sandbox_form_function "${__sandbox_names[__sandbox_at++]}"
                done
                [[ ! -v __sandbox_variables[$__sandbox_name] ]] ||
                        __sandbox_list_one __sandbox_form_variable "$__sandbox_name"
        done
        for __sandbox_name in "${__sandbox_names[@]:__sandbox_at}"; do
                __sandbox_list_one __sandbox_form_function "$__sandbox_name"
        done
        [[ $__sandbox_comma == , ]] || builtin printf '['
        ((__sandbox_left >= 0)) || builtin printf ',{"more":%d}' "$((-__sandbox_left))"
        builtin printf ']\n'
}

# Some 500 of them, and not more bytes than an answer may have.
__sandbox_list_one() {
        ((__sandbox_left <= 0 || __sandbox_room > 0)) || __sandbox_left=0
        ((--__sandbox_left >= 0)) || builtin return 0
        "$1" "$2" 200 ''
        builtin printf '%s%s' "$__sandbox_comma" "$__sandbox_object"
        __sandbox_comma=,
        builtin local LC_ALL=C
        ((__sandbox_room -= ${#__sandbox_object}))
}

__sandbox_show() {
        builtin local __sandbox_name
        __sandbox_survey_user
        if __sandbox_is_name "$1" && [[ -v __sandbox_variables[$1] ]]; then
                __sandbox_form_variable "$1" 20000 yes
                builtin printf '%s\n' "$__sandbox_object"
                builtin return
        fi
        for __sandbox_name in "${__sandbox_names[@]}"; do
                if [[ $__sandbox_name == "$1" ]]; then
                        __sandbox_form_function "$1" 20000 yes
                        builtin printf '%s\n' "$__sandbox_object"
                        builtin return
                fi
        done
        builtin printf '{"error":"there is no variable or function of that name"}\n'
}
