#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# observe.sh OFF ON [N [ARGUMENT...]]: measures the cost of histograms and metrics. OFF is a build without
# histograms, ON a build with histograms. Prints, for both, the instructions of a token, if valgrind is
# installed; then, in interleaved runs with N repetitions of each (default 40), the processor time of a
# token (compare), and the results of `nbar bench` with the ARGUMENTs (interleave.sh), while the metrics
# of ON's daemons are read every second. Started by make bench-observe.
set -u
[ $# -ge 2 ] || { echo "usage: $0 OFF ON [N [ARGUMENT...]]" >&2; exit 2; }
here=$(dirname "$0")
command -v python3 >/dev/null || { echo "$0: no python3, which reads the metrics: apt-get install python3" >&2; exit 1; }
off=$1 on=$2 n=${3:-40}
shift $(($# < 3 ? $# : 3))
if command -v valgrind >/dev/null; then
	for build in "$off" "$on"; do
		echo "$build:"
		"$here/instructions.sh" "$build/bench-loop" || exit
	done
fi
"$here/compare" "$off/bench-loop" "$on/bench-loop" "$n" "token pairwise 2" "token dissemination:1 8" \
	"token pairwise 32" || exit
[ $# -gt 0 ] || set -- --nodes 2,8 --where nic,host --alg pairwise --wire ring -i 5000 -x 500
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# In place of the daemon of ON: starts it, and a process that reads its metrics until it ends.
cat >"$work/nbar-nicd" <<END
#!/usr/bin/env bash
python3 -c '
import os, socket, sys, time
daemon, path, reads = int(sys.argv[1]), sys.argv[2], sys.argv[3]
while os.getppid() == daemon:
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(path)
            s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            text = b""
            while part := s.recv(65536):
                text += part
            assert b"nbar_barriers_completed_total" in text
            open(reads, "a").write(".")
        except OSError: # the daemon starts or ends
            time.sleep(0.01)
            continue
    time.sleep(1)
' \$\$ "$work/metrics.\$\$" "$work/reads" </dev/null >/dev/null 2>&1 &
exec "$(realpath "$on")/nbar-nicd" --metrics "unix:$work/metrics.\$\$" "\$@"
END
chmod +x "$work/nbar-nicd"
ln -s "$(realpath "$on")/nbar" "$work/nbar"
"$here/interleave.sh" "$off" "$work" "$n" "$@" || exit 1
[ -s "$work/reads" ] || { echo "$0: nobody could read the metrics" >&2; exit 1; }
echo "metrics were read $(wc -c <"$work/reads") times"
