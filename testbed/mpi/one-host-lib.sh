# SPDX-License-Identifier: BSD-3-Clause
# one-host-lib.sh - ranks of both MPIs on this machine, which take two NICs and so count as two hosts. Sourced.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
. testbed/e2e/lib.sh
case $BUILD in
/*) bin=$BUILD ;;
*) bin=$PWD/$BUILD ;;
esac
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export PRTE_MCA_rmaps_default_mapping_policy=node:oversubscribe
export OMPI_MCA_mca_base_component_path=$bin/components:SYS_DEFAULT OMPI_MCA_coll_nbar_enable=1
export OMPI_MCA_btl=^openib NBAR_RUN_DIR=$work/d
export MALLOC_PERTURB_=165 # fills freed memory, so that its use shows
