# SPDX-License-Identifier: BSD-3-Clause
# For Spack 1.x: put it into packages/nbar/package.py of a repository of your own, then, in the folder
# with the sources, `spack dev-build nbar@0.1.0`. Tried with Spack 0.23, which has neither the first import
# nor the languages c and cxx; names of packages compared with those of Spack 1.1.
from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class Nbar(MakefilePackage):
    """Barriers that a NIC runs: a soft NIC, a library, and glue for unchanged MPI programs."""

    homepage = "https://nbar.example"

    license("BSD-3-Clause")

    version("0.1.0")

    variant("mpi", default=True, description="component for Open MPI, or PMPI library for MPICH")
    variant("dpdk", default=False, description="the wire dpdk: Ethernet frames through DPDK")
    variant("rdma", default=False, description="the wire verbs: RDMA")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python", type=("build", "run"))
    depends_on("jansson")
    depends_on("libsodium")
    depends_on("dpdk", when="+dpdk")
    depends_on("rdma-core", when="+rdma")
    depends_on("mpi", when="+mpi")

    @property
    def layout(self):
        spec = self.spec
        compilers = {"openmpi": "none", "mpich": "none"}
        for name in compilers:
            if spec.satisfies("+mpi ^[virtuals=mpi] " + name):
                compilers[name] = spec["mpi"].mpicc
        return [
            "prefix=" + self.prefix,
            "sysconfdir=" + self.prefix.etc,
            "OMPI_COMPONENTS=" + self.prefix.lib.openmpi,
            "MPICC_OPENMPI=" + compilers["openmpi"],
            "MPICC_MPICH=" + compilers["mpich"],
            "DPDK=" + ("yes" if spec.satisfies("+dpdk") else ""),
            "VERBS=" + ("yes" if spec.satisfies("+rdma") else ""),
            "KERNEL=",
            "BARED_IMAGE=",
            "PEERS=",  # other compilers' barriers of threads
        ]

    @property
    def build_targets(self):
        return ["all"] + self.layout

    @property
    def install_targets(self):
        return ["install"] + self.layout

    def setup_run_environment(self, env):
        if self.spec.satisfies("+mpi ^[virtuals=mpi] openmpi"):
            env.set("OMPI_MCA_coll_nbar_enable", "1")
            env.set(
                "OMPI_MCA_mca_base_component_path",
                "SYS_DEFAULT:" + self.prefix.lib.openmpi + ":USER_DEFAULT",
            )
