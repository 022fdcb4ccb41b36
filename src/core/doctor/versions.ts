import { ok, risky, wrong, type Judged } from './check.js';

interface Supported {
  readonly name: string;
  /** Older versions lack a feature that we need. */
  readonly least: string;
  /** Versions that this project tests: `11.4` stands for every `11.4.x`. */
  readonly tried: readonly string[];
  /** Releases to avoid, with the reason. */
  readonly avoid?: Readonly<Record<string, string>>;
}

/** All versions that this project knows about. Add a version here after testing it. */
export const SUPPORTED_VERSIONS = {
  node: { name: 'Node', least: '20.19', tried: ['20', '22', '24'] },
  redis: { name: 'Redis', least: '6.2', tried: ['6.2', '7.0'] },
  valkey: { name: 'Valkey', least: '7.2', tried: ['8.1'] },
  mysql: { name: 'MySQL', least: '8.0', tried: ['8.0', '9.7'] },
  mariadb: { name: 'MariaDB', least: '10.6', tried: ['11.4'] },
  rocketmq: {
    name: 'RocketMQ',
    least: '5.0',
    tried: ['5.3.3', '5.4.0'],
    avoid: { '5.5.0': 'after its first half message, one of its threads uses a whole core forever' },
  },
} as const satisfies Record<string, Supported>;

export type Product = keyof typeof SUPPORTED_VERSIONS;

/** @param version begins with numbers and points, such as `11.4.5-MariaDB-log` */
export function judgeVersion(product: Product, version: string): Judged {
  const { name, least, tried, avoid = {} }: Supported = SUPPORTED_VERSIONS[product];
  const numbers = /^\d+(\.\d+)*/.exec(version)?.[0] ?? '';
  const shown = `${name} ${numbers === '' ? version || 'of an unknown version' : numbers}`;
  if (numbers === '' || isOlder(numbers, least)) {
    return wrong(`${shown} is not supported.`, `Update to ${least} or newer${best(tried)}.`);
  }
  const reason = Object.entries(avoid).find(([release]) => isOf(numbers, release))?.[1];
  if (reason !== undefined) return risky(`${shown}: ${reason}.`, `Use another release${best(tried)}.`);
  if (tried.some((release) => isOf(numbers, release))) return ok(shown);
  const known = tried.length === 0 ? 'none of its releases is tested' : `tested: ${tried.join(', ')}`;
  return risky(`${shown} is not tested with this version of seckill (${known}).`, 'Run the tests on it first.');
}

const best = (tried: readonly string[]): string => (tried.length === 0 ? '' : `; ${tried.at(-1)} is tested`);

const partsOf = (version: string): number[] => version.split('.').map(Number);

const isOf = (version: string, release: string): boolean => `${version}.`.startsWith(`${release}.`);

function isOlder(version: string, least: string): boolean {
  const has = partsOf(version);
  for (const [index, needed] of partsOf(least).entries()) {
    const part = has[index] ?? 0;
    if (part !== needed) return part < needed;
  }
  return false;
}
