/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load.c - load OBJECT: gives the programs of a file to the kernel, and prints what its verifier
 * made of each. Exit status 77: the kernel lets this user load no program.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

/* True if the kernel lets this user make a map. Whoever makes no map loads no program. */
static bool may_load(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, 4, 4, 1, NULL);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int main(int argc, char **argv)
{
	struct bpf_object *object;
	struct bpf_program *program;

	if (argc != 2)
		return 2;
	if (!may_load()) {
		printf("no program can be loaded: %s\n", strerror(errno));
		return 77;
	}
	object = bpf_object__open_file(argv[1], NULL);
	if (!object || bpf_object__load(object) < 0)
		return 1;
	bpf_object__for_each_program(program, object)
	{
		struct bpf_prog_info info = { 0 };
		uint32_t size = sizeof(info);

		if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size) < 0)
			return 1;
		printf("%s: %u instructions verified, %u bytes of machine code\n",
		       bpf_program__name(program), info.verified_insns, info.jited_prog_len);
	}
	bpf_object__close(object);
	return 0;
}
