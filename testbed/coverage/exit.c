/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exit.c - saves the coverage counts of a process that ends by _exit().
 *
 * For programs of the coverage build only, which are linked with --wrap=_exit.
 */
void __gcov_dump(void);
_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status);

_Noreturn void __wrap__exit(int status)
{
	__gcov_dump();
	__real__exit(status);
}
