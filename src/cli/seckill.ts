import { Command, Option } from 'commander';
import { version } from '../process/version.js';
import { nameOperator, parseUserId } from '../process/options.js';
import { runCommandLine } from './run-command-line.js';

/** Loads a command only when the user names it. Its libraries take longer to load than most commands take to run. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  migrate: async () => (await import('./setup.js')).migrateCommand(),
  topics: async () => (await import('./setup.js')).topicsCommand(),
  doctor: async () => (await import('../operate/doctor/commands.js')).doctorCommand(),
  restored: async () => (await import('./restored.js')).restoredCommand(),
  api: async () => (await import('./programs.js')).apiCommand(),
  worker: async () => (await import('./programs.js')).workerCommand(),
  keeper: async () => (await import('./programs.js')).keeperCommand(),
  health: async () => (await import('./health.js')).healthCommand(),
  sale: async () => (await import('../operate/sales/commands.js')).saleCommand(),
  orders: async () => (await import('../operate/orders/commands.js')).ordersCommand(),
  coupons: async () => (await import('../operate/coupons/commands.js')).couponsCommand(),
  dlq: async () => (await import('../operate/dead-letters/commands.js')).dlqCommand(),
  reconcile: async () => (await import('../operate/reconcile/commands.js')).reconcileCommand(),
  audit: async () => (await import('../operate/audit/commands.js')).auditCommand(),
  mq: async () => (await import('../operate/broker/commands.js')).mqCommand(),
  trace: async () => (await import('../operate/trace/commands.js')).traceCommand(),
  'payment-cases': async () => (await import('../operate/refunds/commands.js')).paymentCasesCommand(),
  refunds: async () => (await import('../operate/refunds/commands.js')).refundsCommand(),
  witness: async () => (await import('../operate/findings/commands.js')).witnessCommand(),
  changes: async () => (await import('../operate/changes/commands.js')).changesCommand(),
  webhooks: async () => (await import('../operate/webhooks/commands.js')).webhooksCommand(),
  rules: async () => (await import('../operate/rules/commands.js')).rulesCommand(),
  switch: async () => (await import('../operate/rules/commands.js')).switchCommand(),
  room: async () => (await import('../operate/rules/commands.js')).roomCommand(),
  lua: async () => (await import('./lua.js')).luaCommand(),
  purge: async () => (await import('../operate/purge/commands.js')).purgeCommand(),
  'erase-buyer': async () => (await import('../operate/purge/commands.js')).eraseBuyerCommand(),
  revocations: async () => (await import('../operate/revocations/commands.js')).revocationsCommand(),
  plan: async () => (await import('../operate/plan/commands.js')).planCommand(),
  profile: async () => (await import('./profile.js')).profileCommand(),
  token: async () => (await import('./setup.js')).tokenCommand(),
};

const seckill = new Command('seckill')
  .description('A flash-sale order system: sells exactly its stock and loses no order silently.')
  .version(version)
  .addOption(
    new Option('--as <name>', 'your name in the audit log, shown with the account on this machine')
      .env('SECKILL_ACTOR')
      .argParser(parseUserId),
  )
  .hook('preAction', (program) => {
    const { as: name } = program.opts<{ as?: string }>();
    if (name !== undefined) nameOperator(name);
  })
  .addHelpText(
    'after',
    `
Settings are environment variables, such as MYSQL_URL; docs/configuration.md lists them. \`seckill <command> --help\`
shows examples. Times are ISO 8601 with a zone (2026-11-27T10:00:00Z), now, or from now: +10m, -2h, -1d.
Exit codes of every command: 0 done, 1 not done or done in part, 2 wrong usage (options or settings).`,
  );

const word = process.argv[2] ?? '';
const named = Object.hasOwn(COMMANDS, word) ? COMMANDS[word] : undefined;
const asksVersion = word === '--version' || word === '-V';
// --help and an unknown command need all commands
const needed = named !== undefined ? [named] : asksVersion ? [] : Object.values(COMMANDS);
await runCommandLine(seckill, await Promise.all(needed.map((load) => load())));
