/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cg.c - conjugate gradients on several processes, whose dot products are barriers with a value.
 *
 * Build it by: cc -o cg cg.c $(pkg-config --cflags --libs nbar)
 *
 * Usage: cg NIC SIZE. Starts SIZE processes; each has a part of the vectors, and a port of the NIC
 * (or, for example, its own in-process NIC: host:wire=udp). They solve A x = b for A = D + u u', a
 * diagonal and a matrix of rank one, so that a product needs no more of the others than a sum.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nbar.h>

#define PART 1000 /* elements of a process */

static struct nbar_group *group;

static void check(int rc, const char *what)
{
	if (rc < 0) {
		fprintf(stderr, "cg: %s: %s\n", what, nbar_error());
		exit(1);
	}
}

/* This process's part of the sum of a[i] b[i]. */
static struct nbar_value part_of(const double *a, const double *b)
{
	struct nbar_value v = { .op = NBAR_SUM, .type = NBAR_DOUBLE, .count = 1 };

	for (int i = 0; i < PART; i++)
		v.of.f64[0] += a[i] * b[i];
	return v;
}

/* The sum of a[i] b[i] over all processes: the same bits on each. */
static double dot(const double *a, const double *b)
{
	struct nbar_value v = part_of(a, b);

	check(nbar_allreduce(group, &v, &v), "allreduce");
	return v.of.f64[0];
}

static void solve_part(unsigned rank)
{
	static double d[PART], u[PART], x[PART], r[PART], p[PART], q[PART];
	struct nbar_value v;
	double rr, was, alpha;
	uint32_t ticket;
	int n = 0;

	for (int i = 0; i < PART; i++) {
		d[i] = 1 + (double)(rank * PART + (unsigned)i) / 1000;
		u[i] = 1.0 / (1 + i);
		r[i] = p[i] = 1; /* b is 1 everywhere, x begins with 0 */
	}
	for (rr = was = dot(r, r); rr > 1e-20 && n < 1000; n++) {
		double up = dot(u, p);

		for (int i = 0; i < PART; i++)
			q[i] = d[i] * p[i] + u[i] * up;
		alpha = rr / dot(p, q);
		for (int i = 0; i < PART; i++)
			r[i] -= alpha * q[i];
		v = part_of(r, r);
		check(nbar_post_value(group, &v, &ticket), "post");
		for (int i = 0; i < PART; i++) /* while the NICs sum up */
			x[i] += alpha * p[i];
		check(nbar_wait(group, ticket, NBAR_FOREVER), "wait");
		check(nbar_result(group, ticket, &v), "result");
		was = rr;
		rr = v.of.f64[0];
		for (int i = 0; i < PART; i++)
			p[i] = r[i] + rr / was * p[i];
	}
	printf("%d iterations, residual %a, x.x %a\n", n, rr, dot(x, x));
}

int main(int argc, char **argv)
{
	unsigned rank = 0, size = argc == 3 ? (unsigned)atoi(argv[2]) : 0;
	struct nbar_group_attr attr = { .struct_size = sizeof(attr), .size = size, .value_max = 8 };
	struct nbar_endpoint *endpoints;
	struct nbar_port *port;
	unsigned *open;
	int status, failed = 0;

	if (size == 0 || size > 1000) {
		fprintf(stderr, "usage: %s NIC SIZE\n", argv[0]);
		return 2;
	}
	/* Memory that all processes share: their endpoint addresses, and how many are there. */
	endpoints = mmap(NULL, (size + 1) * sizeof(*endpoints), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (endpoints == MAP_FAILED)
		return 1;
	open = (unsigned *)(void *)(endpoints + size);
	while (rank < size && fork() != 0)
		rank++;
	if (rank < size) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		attr.rank = rank;
		check(nbar_open(argv[1], &port), "open");
		check(nbar_group_open(port, &attr, &group, &endpoints[rank]), "group");
		__atomic_fetch_add(open, 1, __ATOMIC_ACQ_REL);
		while (__atomic_load_n(open, __ATOMIC_ACQUIRE) < size)
			usleep(1000);
		check(nbar_group_connect(group, endpoints), "connect");
		solve_part(rank);
		nbar_close(port);
		return 0;
	}
	while (wait(&status) > 0)
		failed |= status != 0;
	return failed;
}
