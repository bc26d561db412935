# SPDX-License-Identifier: BSD-3-Clause
# ratios.awk - medians and ratios of two sides that were measured in turns. compare and interleave.sh
# put it in front of their own awk program; value[key, 1..n] holds n measurements of a key.

function sorted(n,   i, j, t) {
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && v[j] < v[j - 1]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
}

function middle(n) {
	return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}

function median(key, n,   i) {
	for (i = 1; i <= n; i++) v[i] = value[key, i]
	sorted(n)
	return middle(n)
}

# The median of b / a over n repetitions, and its 95 % interval by the sign test, which leaves out
# the `out` smallest and the `out` largest ratios. Fewer than 6 repetitions have no interval.
function ratio(a, b, n,   i, p, sum, out) {
	for (i = 1; i <= n; i++) v[i] = value[a, i] ? value[b, i] / value[a, i] : 0
	sorted(n)
	p = sum = 0.5 ^ n
	for (out = 0; sum <= 0.025; sum += p) {
		out++
		p *= (n - out + 1) / out
	}
	return sprintf("%8.4f", middle(n)) (out ? sprintf(" %.4f-%.4f", v[out], v[n + 1 - out]) : "")
}
