// Which cells a step copies, found through the views of both sides, independently of how the step was made.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/copy_work.h"
#include "planner/copy/steps.h"
#include "sim/shadow/shadow_cells.h"
#include "sim/shadow/stored_view.h"

namespace crossdock::shadow {

// Cells of the source that go to cells of the target, one to one.
struct Piece {
  uint32_t source_view;
  uint32_t target_view;
  Corner source;
  Corner target;
  Corner size;
};

class StepDecoder {
 public:
  // A side: the names of its regions, as steps number them, and its cells.
  struct Side {
    const std::vector<RegionKey>& regions;
    const ShadowCells& cells;
  };

  StepDecoder(const Side& source, const Side& target);
  ~StepDecoder();

  // The pieces of a step; empty, or what is wrong with it: "reads byte 17 of region ...".
  std::string decode(const CopyStep& step, std::vector<Piece>& pieces);

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace crossdock::shadow
