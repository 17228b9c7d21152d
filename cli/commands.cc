#include "cli/commands.h"

namespace crossdock::cli {

void add_commands(Command& app) {
  add_schema_command(app);
  add_placement_command(app);
  add_validate_command(app);
  add_inspect_command(app);
  add_digest_command(app);
  add_convert_command(app);
  add_snapshot_command(app);
  add_bind_command(app);
  add_plan_command(app);
  add_verify_plan_command(app);
  add_replay_command(app);
  add_reshard_command(app);
  add_store_command(app);
  add_simulate_command(app);
  add_check_command(app);
  add_completion_command(app);
}

}  // namespace crossdock::cli
