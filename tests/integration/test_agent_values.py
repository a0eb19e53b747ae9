# SPDX-License-Identifier: MIT
"""What a turn gives back besides its output, as sandbox-agent tells it: values, and files in /workspace/out."""
import socket

from agentlib import Agent


def value(kind, data, length=None):
    return f"say(b'value ' + token + b' {kind} {len(data) if length is None else length}\\n' + {data!r})\n"


def test_values_are_told_in_order():
    with Agent() as agent:
        turn = agent.turn(value("image/png", b"p" * 700000) + value("result", b"[1]") + value("image/svg+xml", b""))
        assert turn.values == [("image/png", b"p" * 700000), ("result", b"[1]"), ("image/svg+xml", b"")]
        assert "values_dropped" not in turn.result
        turn = agent.turn("pass")
        assert turn.values == []


def test_values_over_the_limits_are_dropped():
    with Agent() as agent:
        turn = agent.turn("for n in range(100):\n    " + value("image/png", b"x"))
        assert len(turn.values) == 16 and turn.values_dropped == 84
        turn = agent.turn("big = b'x' * 50_000_000\nsay(b'value ' + token + b' image/png %d\\n' % len(big) + big)\n"
                          + value("result", b"1"))
        assert turn.values == [("result", b"1")] and turn.values_dropped == 1


def test_forged_values_spoil_nothing_but_their_turn():
    with Agent() as agent:
        turn = agent.turn("say(b'value 0123456789abcdef result 9\\n\\ndone x y')\n" + value("result", b"1"))
        assert turn.values == [("result", b"1")] and turn.exit_code == 0
        # After its report.
        turn = agent.turn("done(3)\nsay(b'value ' + token + b' result 1\\n1')")
        assert turn.values == [] and turn.exit_code == 3
        # Announced and never sent: the report is part of it.
        turn = agent.turn(value("image/png", b"", 1000000), timeout=0.3)
        assert turn.timed_out and turn.state == "lost" and turn.values == []
        assert agent.turn(value("result", b"1")).values == [("result", b"1")]


def test_values_are_told_again_to_another_daemon():
    with Agent() as agent:
        agent.begin(value("image/png", b"p" * 300000) + value("result", b"2"))
        agent.socket.recv(1, socket.MSG_PEEK)           # something has been told
        hello = agent.attach()
        assert hello["turn"] == 1
        assert agent.end().values == [("image/png", b"p" * 300000), ("result", b"2")]
        agent.turn("pass")
        agent.attach()
        assert agent.end().values == []


def test_files_in_out():
    with Agent() as agent:
        assert "out" not in agent.turn("pass").result
        turn = agent.turn("os.mkdir('out')\nopen('out/b', 'w').write('12')\nopen('out/a', 'w').write('1')")
        assert turn.result["out"] == [{"name": "a", "bytes": 1}, {"name": "b", "bytes": 2}]
        assert "out" not in agent.turn("pass").result
        turn = agent.turn("open('out/a', 'a').write('23')")
        assert turn.result["out"] == [{"name": "a", "bytes": 3}]
