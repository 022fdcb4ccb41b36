import { Command } from 'commander';
import { loadConfig } from '../core/config/load.js';
import { signToken } from '../http/token.js';
import { parseWhole } from './options.js';

export function tokenCommand(): Command {
  return new Command('token')
    .description('print a bearer token for a buyer or an operator (HS256, signed with JWT_SECRET)')
    .requiredOption('--user <id>', 'user id: letters, digits, _ and -, up to 64')
    .option('--roles <list>', 'roles, separated by commas; admin may use /admin/v1', '')
    .option('--ttl-hours <hours>', 'how long it is valid', parseWhole(1, 8760), 24)
    .action(({ user, roles, ttlHours }: { user: string; roles: string; ttlHours: number }) => {
      const { auth } = loadConfig(['auth'], process.env);
      const token = signToken(
        { userId: user, roles: roles.split(',').filter(Boolean), ttlMs: ttlHours * 3_600_000 },
        auth.key,
      );
      console.log(token);
    });
}
