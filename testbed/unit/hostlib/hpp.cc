/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hpp.cc - nbar.hpp against an in-process NIC. Its output is TAP; $NBAR_HOSTNIC names the library.
 */
#include <cstdio>
#include <cstdlib>
#include <poll.h>

#include "nbar.hpp"

using namespace std::chrono_literals;

static int number, failed;

static void ok(bool well, const char *what)
{
	std::printf("%sok %d - %s\n", well ? "" : "not ", ++number, what);
	failed += !well;
}

static std::vector<nbar::group> pair(const nbar::port &on)
{
	std::vector<nbar::group> g;
	std::vector<nbar_endpoint> all;

	for (std::uint32_t r = 0; r < 2; r++)
		g.emplace_back(r == 0 ? on : nbar::port("host:wire=udp,bind=127.0.0.1:0"), r, 2u);
	for (auto &one : g)
		all.push_back(one.endpoint());
	for (auto &one : g)
		one.connect(all);
	return g;
}

static void barriers(const nbar::port &on)
{
	auto g = pair(on);
	auto first = g[0].post();

	ok(!g[0].test(first) && !g[0].wait_for(first, 1ms), "one of two has not arrived");
	auto second = g[1].post();

	g[0].wait(first);
	ok(g[1].wait_for(second, std::chrono::hours(1)), "both have");
	pollfd p = { g[0].fd(), POLLIN, 0 };

	first = g[0].post();
	(void)g[1].post();
	while (!g[0].arm(first))
		poll(&p, 1, -1);
	ok(g[0].test(first), "poll() ends with the barrier");
	auto moved = std::move(g[0]);

	moved.abort();
	try {
		moved.barrier();
		ok(false, "an abort is thrown");
	} catch (const nbar::error &e) {
		ok(e.code() == -ECANCELED && std::string(e.what()).find("abort") != std::string::npos,
		   "an abort is thrown");
	}
}

int main()
{
	try {
		nbar::port *one = new nbar::port("host:wire=udp,bind=127.0.0.1:0");
		nbar::group keeps(*one, 0, 1);

		barriers(*one);
		delete one;
		keeps.connect({ keeps.endpoint() });
		keeps.barrier();
		ok(true, "a group keeps its port");
		ok(keeps.missing().empty(), "nobody is missing");
	} catch (const nbar::error &e) {
		std::printf("# %s\n", e.what());
		ok(false, "no error");
	}
	try {
		nbar::port none("/nowhere/n0.sock");
		ok(false, "a NIC that is not there");
	} catch (const nbar::error &e) {
		ok(e.code() == -ENOENT, "a NIC that is not there");
	}
	std::printf("1..%d\n", number);
	return failed != 0;
}
