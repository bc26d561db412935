! SPDX-License-Identifier: BSD-3-Clause
! coarray.f90 - images that meet in `sync all`: none leaves it before the last one has entered it.
program coarrays
	use, intrinsic :: iso_fortran_env, only: int64
	implicit none
	integer, parameter :: rounds = 100
	integer(int64) :: entered(rounds), left(rounds)
	integer :: i

	do i = 1, rounds
		call system_clock(entered(i))
		sync all
		call system_clock(left(i))
	end do
	call co_max(entered)
	call co_min(left)
	print '("image ", i0, ": ", i0, " early")', this_image(), count(left < entered)
end program
