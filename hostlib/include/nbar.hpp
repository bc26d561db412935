/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbar.hpp - nbar.h for C++17: ports and groups that close themselves, errors that are thrown.
 *
 * Header only:
 *
 *	nbar::port port("n0");
 *	nbar::group group(port, rank, size);
 *	group.connect(all);             // group.endpoint() of every rank
 *	auto ticket = group.post();
 *	group.wait(ticket);             // throws nbar::error
 *
 * A group keeps its port open. The rules of nbar.h for threads and memory are valid
 * here.
 */
#ifndef NBAR_HPP
#define NBAR_HPP

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "nbar.h"

namespace nbar
{

/* A negative errno of nbar.h, with the text of nbar_error(). */
class error : public std::runtime_error {
    public:
	explicit error(int code) : std::runtime_error(nbar_error()), code_(code)
	{
	}
	int code() const noexcept
	{
		return code_;
	}

    private:
	int code_;
};

inline int check(int rc)
{
	if (rc < 0)
		throw error(rc);
	return rc;
}

/* An open port of a NIC. Copies are the same port. The port is closed when the last copy and the
 * last group of the port are gone. */
class port {
    public:
	explicit port(const std::string &nic) : port(nic.c_str())
	{
	}
	explicit port(const char *nic = nullptr)
	{
		nbar_port *p = nullptr;

		check(nbar_open(nic, &p));
		port_ = std::shared_ptr<nbar_port>(p, nbar_close);
	}
	nbar_port *get() const noexcept
	{
		return port_.get();
	}

    private:
	std::shared_ptr<nbar_port> port_;
};

/* This process's member of a group. Can be moved, not copied. */
class group {
    public:
	group(const port &on, std::uint32_t rank, std::uint32_t size, const char *alg = nullptr,
	      std::uint32_t tag = 0)
		: port_(on), size_(size)
	{
		nbar_group_attr attr = {};
		nbar_group *g = nullptr;

		attr.struct_size = sizeof(attr);
		attr.rank = rank;
		attr.size = size;
		attr.alg = alg;
		attr.tag = tag;
		check(nbar_group_open(port_.get(), &attr, &g, &endpoint_));
		group_.reset(g);
	}

	group(group &&) noexcept = default;
	group &operator=(group &&other) noexcept
	{
		group_ = std::move(other.group_); /* the old group ends before its port */
		port_ = std::move(other.port_);
		endpoint_ = other.endpoint_;
		size_ = other.size_;
		return *this;
	}

	/* The endpoint address, which the other members need. */
	const nbar_endpoint &endpoint() const noexcept
	{
		return endpoint_;
	}

	/* all[r]: address of rank r. Throws std::invalid_argument if `all` is too short. */
	void connect(const std::vector<nbar_endpoint> &all)
	{
		check(nbar_group_connect(get(), whole(all).data()));
	}

	[[nodiscard]] std::uint32_t post()
	{
		std::uint32_t ticket = 0;

		check(nbar_post(get(), &ticket));
		return ticket;
	}
	[[nodiscard]] bool test(std::uint32_t ticket)
	{
		return check(nbar_test(get(), ticket)) == 1;
	}
	void wait(std::uint32_t ticket)
	{
		check(nbar_wait(get(), ticket, NBAR_FOREVER));
	}
	/* False: the time is over; the barrier stays posted. */
	[[nodiscard]] bool wait_for(std::uint32_t ticket, std::chrono::nanoseconds time)
	{
		auto ns = time.count() < 0 ? 0 : static_cast<std::uint64_t>(time.count());
		int rc = nbar_wait(get(), ticket, ns);

		return rc == -ETIME ? false : check(rc) == 0;
	}
	void barrier()
	{
		check(nbar_barrier(get()));
	}

	/* For poll(); see nbar_group_fd and nbar_group_arm. */
	int fd()
	{
		return check(nbar_group_fd(get()));
	}
	[[nodiscard]] bool arm(std::uint32_t ticket)
	{
		return check(nbar_group_arm(get(), ticket)) == 1;
	}

	void abort()
	{
		check(nbar_group_abort(get()));
	}
	std::vector<std::uint32_t> missing() const
	{
		std::vector<std::uint32_t> ranks(NBAR_STRAGGLERS_MAX);
		int n = nbar_missing(get(), ranks.data(), NBAR_STRAGGLERS_MAX);

		ranks.resize(static_cast<std::size_t>(n < 0 ? 0 : n));
		return ranks;
	}
	nbar_group *get() const noexcept
	{
		return group_.get();
	}

    private:
	const std::vector<nbar_endpoint> &whole(const std::vector<nbar_endpoint> &all) const
	{
		if (all.size() < size_)
			throw std::invalid_argument("fewer endpoint addresses than members");
		return all;
	}
	struct closer {
		void operator()(nbar_group *g) const noexcept
		{
			nbar_group_close(g);
		}
	};
	port port_; /* declared first: the group is closed before it */
	std::unique_ptr<nbar_group, closer> group_;
	nbar_endpoint endpoint_{};
	std::uint32_t size_;
};

} // namespace nbar
#endif
