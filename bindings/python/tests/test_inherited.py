"""Sockets from a supervisor. Each case is a process of its own: a socket is given once."""

from __future__ import annotations

import textwrap
import unittest

from support import Case, run

#: Puts two sockets where a supervisor puts them. The rest of a script follows.
SERVICE = """
import os, socket
tcp, udp = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
tcp.bind(("127.0.0.1", 0)); tcp.listen()
udp.bind(("127.0.0.1", 0))
held = [os.dup(tcp.fileno()), os.dup(udp.fileno())]
while min(held) < 5:
    held = [os.dup(each) for each in held]
ports = [each.getsockname()[1] for each in (tcp, udp)]
tcp.detach(), udp.detach()
os.dup2(held[0], 3), os.dup2(held[1], 4)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="2", LISTEN_FDNAMES="web:log")
import paceline
"""


class Inherited(Case):
    def told(self, script: str) -> str:
        told = run(SERVICE + textwrap.dedent(script))
        self.assertEqual(told.returncode, 0, told.stderr)
        return told.stdout

    def test_they_are_taken_once_and_used(self) -> None:
        script = """
        web, log = paceline.inherited()
        print(web.name, log.name, [web.fileno(), log.fileno()], paceline.inherited())
        class Echo(paceline.ConnHandler):
            def data(self, conn, data):
                conn.write(data)
        pool = paceline.Pool(1)
        with paceline.Server(pool, web, Echo) as server:
            with paceline.Udp(pool, lambda udp, all: udp.send(all[0].data, all[0].peer), log) as udp:
                web.close(), web.close()
                del log
                client = socket.create_connection(("127.0.0.1", ports[0]), 60)
                client.sendall(b"stream")
                print(client.recv(100))
                other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                other.settimeout(60)
                other.sendto(b"datagram", ("127.0.0.1", ports[1]))
                print(other.recv(100))
                client.close()
        pool.shutdown()
        print(web)
        """
        expected = "web log [3, 4] []\nb'stream'\nb'datagram'\n<paceline.Inherited 'web' fd=-1>\n"
        self.assertEqual(self.told(script), expected)

    def test_one_that_is_lost_is_closed_and_one_that_is_detached_is_not(self) -> None:
        script = """
        web, log = paceline.inherited()
        own = socket.socket(fileno=log.detach())
        del web, log
        try:
            os.fstat(3)
        except OSError:
            print("closed")
        print(own.getsockname()[1] == ports[1])
        """
        self.assertEqual(self.told(script), "closed\nTrue\n")

    def test_variables_that_make_no_sense(self) -> None:
        script = """
        os.environ["LISTEN_FDS"] = "some"
        try:
            paceline.inherited()
        except paceline.InvalidError as error:
            print(error)
        del os.environ["LISTEN_FDNAMES"]
        os.environ["LISTEN_FDS"] = "90"
        try:
            paceline.inherited()
        except OSError as error:
            print(error.errno)
        os.environ["LISTEN_PID"] = "1"
        print(paceline.inherited())
        """
        expected = 'LISTEN_FDS is "some", but must be a number of descriptors\n9\n[]\n'
        self.assertEqual(self.told(script), expected)

    def test_there_are_none(self) -> None:
        self.assertEqual(run("import paceline; print(paceline.inherited())").stdout, "[]\n")


if __name__ == "__main__":
    unittest.main()
