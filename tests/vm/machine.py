# SPDX-License-Identifier: MIT
"""One virtual machine, emulated in software because build machines have no KVM.

A machine starts from an image's RAM snapshot in a few seconds; its disk forgets all changes. What to run goes in as a
tar on a second disk, what comes of it goes out as a tar on a third; the first serial line is the log.
"""
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

TRANSFER_SIZE = 128 << 20           # of the disks in and out; a restored guest expects the size that it saw
SNAPSHOT_S = 240
MEMORY_MB = 1536
KERNEL_OPTIONS = ("console=ttyS0 quiet loglevel=3 systemd.show_status=0 mitigations=off panic=-1 random.trust_cpu=on "
                  "tsc=reliable no_timer_check nokaslr apparmor=0 selinux=0 audit=0")


# The kernel changes its own code by an int3 that it takes away again. qemu, which emulates the processors in threads,
# now and then still has one of them execute it then, and the kernel does not know it any more.
EMULATOR_FAULT = "Oops: int3"


class MachineError(Exception):
    """The machine ended or hung where it should not have; the text has its console."""


class EmulatorError(MachineError):
    """What the kernel tripped over is none of its code: the machine is to be started again."""


def version():
    try:
        done = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return "none"
    return done.stdout.split("\n", maxsplit=1)[0]


class Machine:
    """A running qemu; work holds its sockets and disks and is removed with it."""

    def __init__(self, image, disk, payload=None, options=()):
        self.work = tempfile.mkdtemp(prefix="nix-sandbox-vm-")
        try:
            for name in ("in.tar", "out.tar"):
                path = os.path.join(self.work, name)
                if payload and name == "in.tar":
                    subprocess.run(["tar", "-C", payload, "-cf", path, "."], check=True)
                with open(path, "ab") as f:
                    if f.tell() > TRANSFER_SIZE:
                        raise MachineError("what to run is larger than the disk it goes in on")
                    f.truncate(TRANSFER_SIZE)
            self.process = subprocess.Popen(self._command(image, disk, options), stdin=subprocess.PIPE,
                                            stdout=subprocess.DEVNULL)
            self.qmp = self._connect()
        except BaseException:
            self.close()
            raise

    def _command(self, image, disk, options):
        command = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none",
                   "-machine", "q35", "-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max", "-smp", "2",
                   "-m", str(MEMORY_MB), "-kernel", f"{image}/vmlinuz", "-initrd", f"{image}/initrd",
                   "-append", KERNEL_OPTIONS]
        for name, drive in (("root", disk), ("in", f"file={self.work}/in.tar,format=raw,readonly=on"),
                            ("out", f"file={self.work}/out.tar,format=raw,cache=unsafe")):
            command += ["-drive", f"if=none,id={name},{drive}", "-device", f"virtio-blk-pci,drive={name}"]
        return [*command, "-device", "isa-debug-exit,iobase=0xf4,iosize=1",
                "-chardev", f"file,id=log,path={self.work}/console", "-serial", "chardev:log",
                "-chardev", "stdio,id=go,signal=off", "-serial", "chardev:go",
                "-qmp", f"unix:{self.work}/qmp,server=on,wait=off", *options]

    def _connect(self):
        end = time.monotonic() + 60
        while True:
            qmp = socket.socket(socket.AF_UNIX)
            try:
                qmp.connect(f"{self.work}/qmp")
                break
            except OSError as e:
                qmp.close()
                if self.process.poll() is not None or time.monotonic() > end:
                    raise MachineError("qemu did not start") from e
                time.sleep(0.02)
        self.stream = qmp.makefile("rw")
        qmp.settimeout(SNAPSHOT_S)
        self.stream.readline()
        self.command("qmp_capabilities")
        return qmp

    def command(self, name, **arguments):
        self.stream.write(json.dumps({"execute": name, "arguments": arguments}) + "\n")
        self.stream.flush()
        while True:
            answer = json.loads(self.stream.readline())
            if "error" in answer:
                raise MachineError(f"{name}: {answer['error']}")
            if "return" in answer:
                return answer["return"]

    def wait_status(self, wanted):
        """Until the state of the machine or of its migration is one of wanted."""
        query, end = ("query-migrate" if "completed" in wanted else "query-status"), time.monotonic() + SNAPSHOT_S
        while (status := self.command(query).get("status")) not in wanted:
            if time.monotonic() > end:
                raise MachineError(f"{query}: still {status}")
            time.sleep(0.02)
        return status

    def console(self):
        try:
            with open(f"{self.work}/console", encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def wait_ready(self):
        end = time.monotonic() + SNAPSHOT_S
        while "VM-READY" not in self.console():
            if self.process.poll() is not None or time.monotonic() > end:
                raise MachineError("the machine did not come up:\n" + self.console())
            time.sleep(0.1)

    def go(self):
        self.process.stdin.write(b"go %.3f\n" % time.time())
        self.process.stdin.flush()

    def wait_end(self, bound, results):
        """Unpacks what came out into results; false if the machine did not get to its end within bound seconds."""
        end = time.monotonic() + bound
        while self.process.poll() is None and EMULATOR_FAULT not in self.console():
            if time.monotonic() > end:
                return False
            time.sleep(0.5)
        if EMULATOR_FAULT in self.console():
            raise EmulatorError("the emulated processor executed what the kernel had taken away:\n" + self.console())
        subprocess.run(["tar", "-C", results, "-xf", f"{self.work}/out.tar"], stderr=subprocess.DEVNULL, check=False)
        return "\nVM-END 0\n" in self.console().replace("\r", "")

    def close(self):
        process = getattr(self, "process", None)
        if process:
            process.kill()
            process.wait()
            process.stdin.close()
        shutil.rmtree(self.work, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def make_snapshot(image):
    """Starts image's machine, waits until it is ready to be told what to run, and keeps its RAM and disk."""
    disk = f"{image}/disk.qcow2"
    # The name of the base is relative, because the image is renamed when complete.
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", "root.ext4", "-F", "raw", disk], check=True)
    with Machine(image, f"file={disk},format=qcow2,cache=unsafe", options=["-no-reboot"]) as m:
        m.wait_ready()
        m.command("stop")
        m.command("migrate-set-parameters", **{"max-bandwidth": 10 << 30})
        m.command("migrate", uri=f"exec:cat >'{image}/ram'")
        if m.wait_status(("completed", "failed")) != "completed":
            raise MachineError("the machine's state could not be saved")
        m.command("quit")
        m.process.wait(60)


def restore(image, payload):
    """A machine that runs payload/run, as root, from where the snapshot was taken."""
    m = Machine(image, f"file={image}/disk.qcow2,format=qcow2,snapshot=on,cache=unsafe", payload,
                ["-S", "-incoming", f"exec:cat '{image}/ram'"])
    try:
        m.wait_status(("paused", "prelaunch", "postmigrate", "running"))
        m.command("cont")
        m.go()
    except BaseException:
        m.close()
        raise
    return m
