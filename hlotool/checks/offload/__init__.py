"""Host offload: where tensors that were moved to the host go, and what must not happen to them there.

The rules are those of XLA's HostOffloader pass; here nothing is changed, and every finding shows the tensor's
whole path. XLA: hlo/transforms/host_offloader.cc, service/host_offload_utils.cc.
"""
