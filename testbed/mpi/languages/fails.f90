! SPDX-License-Identifier: BSD-3-Clause
! fails.f90 - rank 1 of 2 leaves a communicator: the MPI_Wait of rank 0 reports that a nonblocking
! barrier and a nonblocking allreduce have failed.
program fails
	use mpi_f08
	implicit none
	type(MPI_Comm) :: comm
	type(MPI_Request) :: request
	integer :: i, me, rc, values(2), sums(2)

	call MPI_Init()
	call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
	call MPI_Comm_dup(MPI_COMM_WORLD, comm)
	call MPI_Comm_rank(comm, me)
	do i = 1, 40
		values = [me, i]
		call MPI_Barrier(comm)
		call MPI_Allreduce(values, sums, 2, MPI_INTEGER, MPI_SUM, comm)
		call MPI_Iallreduce(values, sums, 2, MPI_INTEGER, MPI_SUM, comm, request)
		call MPI_Wait(request, MPI_STATUS_IGNORE)
		if (sums(1) /= 1 .or. sums(2) /= 2 * i) print *, 'a wrong sum'
	end do
	if (me == 1) then
		call MPI_Comm_free(comm)
	else
		call MPI_Iallreduce(values, sums, 2, MPI_INTEGER, MPI_SUM, comm, request, rc)
		if (rc == MPI_SUCCESS) call MPI_Wait(request, MPI_STATUS_IGNORE, rc)
		if (rc /= MPI_SUCCESS) print *, 'MPI_Iallreduce: reported'
		call MPI_Ibarrier(comm, request, rc)
		if (rc == MPI_SUCCESS) call MPI_Wait(request, MPI_STATUS_IGNORE, rc)
		if (rc /= MPI_SUCCESS) print *, 'MPI_Ibarrier: reported'
	end if
	call MPI_Finalize()
end program
