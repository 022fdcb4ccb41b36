import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';

/** The servers that a folder of test/ needs. */
interface FolderNeeds {
  /** `secure`: servers with TLS and access control everywhere. */
  readonly servers: 'none' | 'plain' | 'secure';
  /** Number of files that run at the same time; default 1. */
  readonly jobs?: number;
  /** Maximum number of test files in one process (a part). Default: all. Stacks share the parts. */
  readonly partFiles?: number;
}

/** The folders in the order of a run. */
const FOLDERS = {
  unit: { servers: 'none' },
  guard: { servers: 'none' },
  simulation: { servers: 'none' },
  hostile: { servers: 'none' },
  newcomer: { servers: 'none' },
  deploy: { servers: 'none' },
  contract: { servers: 'plain', jobs: 3 },
  lua: { servers: 'plain' },
  integration: { servers: 'plain', partFiles: 4 },
  browser: { servers: 'plain', partFiles: 2 },
  image: { servers: 'plain' },
  scenario: { servers: 'plain' },
  secure: { servers: 'secure' },
  time: { servers: 'plain' },
} as const satisfies Readonly<Record<string, FolderNeeds>>;
export type Folder = keyof typeof FOLDERS;
export const FOLDER_NAMES = Object.keys(FOLDERS) as readonly Folder[];
export const needsOf = (folder: Folder): FolderNeeds => FOLDERS[folder];

/** A command that runs tests. */
interface TestCommand {
  readonly about: string;
  /** Folders and files below test/. Naming a file overrides the command of its folder. */
  readonly has: readonly string[];
  /** Number of sets of servers that share its work; default 1. */
  readonly stacks?: number;
}

const CORE_INTEGRATION = [
  ...['one-purchase', 'order-life', 'purchase-events', 'sale-admin', 'keeper', 'after-the-order'],
  ...['repair', 'reconcile', 'dead-letters', 'admission-rules', 'drain'],
];
const filesIn = (folder: string, names: readonly string[]): string[] =>
  names.map((name) => `${folder}/${name}.test.ts`);

export const COMMANDS = {
  core: {
    about: 'every rule of the product at the cheapest level, and the life of a purchase on real servers',
    has: [
      ...['unit', 'guard', 'simulation', 'contract', 'lua'],
      ...filesIn('integration', CORE_INTEGRATION),
      'scenario/core-scenarios.test.ts',
    ],
  },
  more: {
    about: 'features, tools and topologies on real servers',
    has: [
      'integration',
      ...filesIn('contract', ['doctor', 'several-brokers', 'redis-topologies', 'replica-barrier', 'query-plans']),
      ...filesIn('contract', ['local-stack', 'redis-probe', 'resharded-sale', 'witness', 'coupons', 'bulk-refunds']),
    ],
    stacks: 2,
  },
  faults: { about: 'servers and programs that die at work', has: ['scenario'] },
  pages: { about: 'the console and the buyer page in Chromium', has: ['browser'] },
  secure: { about: 'servers with TLS and access control everywhere', has: ['secure'] },
  hostile: { about: 'random and malicious input', has: ['hostile'] },
  newcomer: { about: 'every command that the documentation shows', has: ['newcomer'] },
  tools: {
    about: 'containers, charts and alerts, by tools of others',
    has: ['deploy', 'image', ...filesIn('contract', ['mqadmin', 'alert-rules'])],
  },
  time: { about: 'promises about time, alone on the machine', has: ['time'] },
} as const satisfies Readonly<Record<string, TestCommand>>;
export type CommandName = keyof typeof COMMANDS;
export const COMMAND_NAMES = Object.keys(COMMANDS) as readonly CommandName[];
export const isCommand = (name: string): name is CommandName => (COMMAND_NAMES as readonly string[]).includes(name);
export const stacksOf = (name: CommandName): number => (COMMANDS[name] as TestCommand).stacks ?? 1;

/** Long files start first, so that parallel files end at about the same time. */
const FIRST = [
  'delivery-source',
  'rocketmq-connection',
  'batch-store',
  'held-delivery',
  'purchase-channel',
  'mysql-faults',
];

/** Returns every test file, relative to the root of the checkout. */
export function testFiles(): string[] {
  const rank = (name: string): number => (FIRST.includes(name.slice(0, -'.test.ts'.length)) ? 0 : 1);
  return FOLDER_NAMES.flatMap((folder) => {
    const names = readdirSync(join(REPO_DIR, 'test', folder), { recursive: true, encoding: 'utf8' });
    return names
      .filter((name) => name.endsWith('.test.ts'))
      .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
      .map((name) => join('test', folder, name));
  });
}

/** @param file `test/<folder>/…` */
export const folderOf = (file: string): Folder => file.split('/')[1] as Folder;

/** Returns the commands that claim a file with the longest matching name. A guard asserts exactly one. */
export function claimsOf(file: string): CommandName[] {
  const claims = COMMAND_NAMES.flatMap((name) =>
    (COMMANDS[name] as TestCommand).has
      .filter((part) => file === `test/${part}` || file.startsWith(`test/${part}/`))
      .map((part) => ({ name, length: part.length })),
  );
  const longest = Math.max(...claims.map(({ length }) => length));
  return claims.filter(({ length }) => length === longest).map(({ name }) => name);
}

export const filesOf = (command: CommandName): string[] =>
  testFiles().filter((file) => claimsOf(file).includes(command));
