# SPDX-License-Identifier: MIT
# An MCP conversation as an editor leads it: sends the lines of its standard input to nix-sandbox-mcp one by one, waits
# for the answer to each that has an id, and prints it.
#   mcp-talk [ARGUMENT-OF-NIX-SANDBOX-MCP…]
set -eu
coproc shim { exec nix-sandbox-mcp "$@"; }
while IFS= read -r request; do
    printf '%s\n' "$request" >&"${shim[1]}"
    case $request in *'"id":'*) ;; *) continue ;; esac
    while IFS= read -r -t 300 answer <&"${shim[0]}"; do
        case $answer in *'"id":'*) break ;; esac
    done
    printf '%s\n' "$answer"
done
