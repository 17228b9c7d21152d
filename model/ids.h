// The names that documents use, one type each.
#pragma once

#include <cstddef>

#include "base/strong_id.h"

namespace crossdock {

using ParticipantId = StrongName<struct ParticipantTag>;  // one rank of a topology
using ComponentName = StrongName<struct ComponentTag>;    // "key", "value", "latent", ...; a name, never a meaning
using ResourceId = StrongName<struct ResourceTag>;        // what is moved, for example "kv:request-17"
using RevisionId = StrongName<struct RevisionTag>;
using OperationId = StrongName<struct OperationTag>;
using InstanceId = StrongName<struct InstanceTag>;  // one life of one runtime process
using DeviceId = StrongName<struct DeviceTag>;
using RegionId = StrongName<struct RegionTag>;  // registered memory of an instance, or a stored object
using PageTableId = StrongName<struct PageTableTag>;
using ObjectKey = StrongName<struct ObjectKeyTag>;  // tells the objects of one store layout apart

// The most bytes of text a name may have in a document.
inline constexpr size_t kNameBytesMax = 256;

}  // namespace crossdock
