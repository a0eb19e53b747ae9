#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A polkit whose answers a test decides. On the bus of DBUS_SYSTEM_BUS_ADDRESS it owns polkit's name and prints every
call as a line of JSON; lines on standard input say how to answer which:
  {"serial": N, "signature": "(bba{ss})", "values": [[true, false, {}]]}
  {"serial": N, "error": NAME, "message": TEXT}
  {"exit": STATUS}
"""
import json
import os
import sys

import dbus
import dbus.lowlevel
import dbus.mainloop.glib
from gi.repository import GLib

NAME = "org.freedesktop.PolicyKit1"
questions, orders = {}, [b""]


def pid_of(fd):
    with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pid:"))


def tell(**line):
    print(json.dumps(line), flush=True)


def question(message):
    (kind, subject), action, details, flags, cancellation = message.get_args_list()
    fd = subject["pidfd"].take()
    tell(method="CheckAuthorization", serial=message.get_serial(), sender=message.get_sender(), kind=kind,
         pid=int(subject["pid"]), start_time=int(subject["start-time"]), uid=int(subject["uid"]), pidfd_pid=pid_of(fd),
         action=action, details=details, flags=int(flags), id=cancellation, signature=message.get_signature())
    os.close(fd)
    questions[message.get_serial()] = message


def on_message(_bus, message):
    if not isinstance(message, dbus.lowlevel.MethodCallMessage) or message.get_interface() != NAME + ".Authority":
        return dbus.lowlevel.HANDLER_RESULT_NOT_YET_HANDLED
    if message.get_member() == "CheckAuthorization":
        question(message)
    else:
        tell(method=message.get_member(), arguments=message.get_args_list(), no_reply=message.get_no_reply())
    return dbus.lowlevel.HANDLER_RESULT_HANDLED


def obey(order):
    if "exit" in order:
        os._exit(order["exit"])
    message = questions.pop(order["serial"])
    if "error" in order:
        bus.send_message(dbus.lowlevel.ErrorMessage(message, order["error"], order["message"]))
        return
    reply = dbus.lowlevel.MethodReturnMessage(message)
    if order["signature"]:
        reply.append(*order["values"], signature=order["signature"])
    bus.send_message(reply)


def on_orders(_source, _condition):
    data = os.read(0, 65536)
    if not data:
        os._exit(0)
    *lines, orders[0] = (orders[0] + data).split(b"\n")
    for line in lines:
        obey(json.loads(line))
    return True


dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.SystemBus(private=True)
bus.add_message_filter(on_message)
assert bus.request_name(NAME) == dbus.bus.REQUEST_NAME_REPLY_PRIMARY_OWNER
GLib.io_add_watch(0, GLib.IO_IN | GLib.IO_HUP, on_orders)
tell(method="ready")
GLib.MainLoop().run()
