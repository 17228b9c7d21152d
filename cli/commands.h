// The list of commands.
#pragma once

namespace crossdock::cli {

class Command;

// All of them, in the order of the help.
void add_commands(Command& app);

// Each adds its subcommand to the program.
void add_schema_command(Command& app);
void add_placement_command(Command& app);
void add_validate_command(Command& app);
void add_inspect_command(Command& app);
void add_digest_command(Command& app);
void add_convert_command(Command& app);
void add_snapshot_command(Command& app);
void add_bind_command(Command& app);
void add_plan_command(Command& app);
void add_verify_plan_command(Command& app);
void add_replay_command(Command& app);
void add_reshard_command(Command& app);
void add_store_command(Command& app);
void add_simulate_command(Command& app);
void add_check_command(Command& app);
void add_completion_command(Command& app);

}  // namespace crossdock::cli
