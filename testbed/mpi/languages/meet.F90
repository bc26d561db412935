! SPDX-License-Identifier: BSD-3-Clause
! meet.F90 - barriers of a Fortran program: by mpif.h, by the module mpi (-DMODULE_MPI), or by the
! module mpi_f08 (-DMODULE_F08). meet.c is the same in C, and both may be in one job.
!
! All ranks run on one machine and have one clock: no rank may leave a barrier before the last one
! has entered it.
#ifdef MODULE_F08
#define COMMUNICATOR type(MPI_Comm)
#define REQUEST type(MPI_Request)
#else
#define COMMUNICATOR integer
#define REQUEST integer
#endif
program meet
#if defined MODULE_F08
	use mpi_f08
#elif defined MODULE_MPI
	use mpi
#endif
	use, intrinsic :: iso_fortran_env, only: int64
	implicit none
#if !defined MODULE_F08 && !defined MODULE_MPI
	include 'mpif.h'
#endif
	integer, parameter :: rounds = 100
	COMMUNICATOR :: halves
	integer :: rank, error, early = 0
	integer(int64) :: entered(rounds), left(rounds)

	call MPI_Init(error)
	call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
	call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, halves, error)
	call blocking(MPI_COMM_WORLD)
	call blocking(halves)
	call nonblocking(MPI_COMM_WORLD)
	call MPI_Comm_free(halves, error)
	print '("fortran rank ", i0, ": ", i0, " early")', rank, early
	call MPI_Finalize(error)
contains
	integer(int64) function now()
		call system_clock(now)
	end function

	subroutine blocking(comm)
		COMMUNICATOR, intent(in) :: comm
		integer :: i, rc

		do i = 1, rounds
			entered(i) = now()
			call MPI_Barrier(comm, rc)
			left(i) = now()
		end do
		call compare(comm)
	end subroutine

	subroutine nonblocking(comm)
		COMMUNICATOR, intent(in) :: comm
		REQUEST :: request
		integer :: i, rc

		do i = 1, rounds
			entered(i) = now()
			call MPI_Ibarrier(comm, request, rc)
			call MPI_Wait(request, MPI_STATUS_IGNORE, rc)
			left(i) = now()
		end do
		call compare(comm)
	end subroutine

	subroutine compare(comm)
		COMMUNICATOR, intent(in) :: comm
		integer(int64) :: last(rounds), first(rounds)
		integer :: rc

		call MPI_Allreduce(entered, last, rounds, MPI_INTEGER8, MPI_MAX, comm, rc)
		call MPI_Allreduce(left, first, rounds, MPI_INTEGER8, MPI_MIN, comm, rc)
		early = early + count(first < last)
	end subroutine
end program
