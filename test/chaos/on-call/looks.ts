import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { REPO_DIR } from '../../../deploy/local/stack/paths.js';
import { unpackDebian } from '../../helpers/debian-packages.js';
import { BUILT_MAIN } from '../harness/commands.js';
import { PLACES, type Shop } from './shop.js';

/** A command of the runbook that only reads. */
export interface Look {
  readonly run: string;
  /** Text that a useful output contains. */
  readonly says: RegExp;
}

const LOOK_MAX_S = 20;
const LINES_SHOWN = 3;
const LINE_SHOWN = 160;

const readRunbook = (): string => readFileSync(join(REPO_DIR, 'docs/runbook.md'), 'utf8');

/**
 * Imitates the machine of the runbook, although the programs of this run have other ports and no systemd. `logs` is
 * copied from the runbook.
 */
const MACHINE = `
exec 2>&1
seckill() { "$NODE" "$MAIN" "$@"; }
redis-cli() { LD_LIBRARY_PATH="$LIBRARIES" "$TOOLS/redis-cli" -p "$REDIS_PORT" "$@"; }
mysql() { LD_LIBRARY_PATH="$LIBRARIES" "$TOOLS/mariadb" --no-defaults --socket="$MYSQL_SOCKET" "$@"; }
systemctl() {
  while read -r unit pid; do
    [[ $unit == $2 ]] || continue
    if kill -0 "$pid" 2>/dev/null; then echo "$unit active"; else echo "$unit failed"; fi
  done <<<"$UNITS"
}
journalctl() {
  local program=\${2#seckill-} lines=+1
  if [[ $3 == -n ]]; then lines=$4; fi
  find "$LOGS" -name "\${program%%[@*]*}-*.log" -mmin -15 -exec cat {} + | tail -n "$lines"
}
`;

/** Runs looks of the runbook on a shop. */
export class Looks {
  readonly #shop: Shop;
  readonly #preamble: string;
  readonly #tools: string;

  private constructor(shop: Shop, tools: string) {
    const logs = /^logs\(\) .+$/m.exec(readRunbook());
    if (logs === null) throw new Error('docs/runbook.md does not define logs');
    this.#shop = shop;
    this.#preamble = `${MACHINE}${logs[0]}\n`;
    this.#tools = tools;
  }

  /** @throws Error if this machine lacks the clients of Redis and MySQL */
  static async open(shop: Shop): Promise<Looks> {
    const packages = ['redis-tools', 'mariadb-client-core'];
    const found = await unpackDebian({ name: 'looks', packages, withDependencies: true });
    if ('missing' in found) throw new Error(found.missing);
    return new Looks(shop, join(found.folder, 'usr'));
  }

  /** Returns the output. The table shows its first lines. */
  async run(command: string): Promise<string> {
    const args = [`${LOOK_MAX_S}`, 'bash', '-c', this.#preamble + this.#here(command)];
    try {
      const { stdout } = await promisify(execFile)('timeout', args, { env: this.#env });
      return stdout;
    } catch (error) {
      const { stdout = '', code } = error as { readonly stdout?: string; readonly code?: unknown };
      // other exit codes are part of the look
      return code === 124 ? `${stdout}(no answer within ${LOOK_MAX_S} s)` : stdout;
    }
  }

  /** Replaces ports by the ports of this run. */
  #here(command: string): string {
    const portsOf = this.#shop.portsOf.bind(this.#shop);
    const [[apiPort, api], [worker], [keeper]] = [portsOf('api-1'), portsOf('worker-1'), portsOf('keeper-1')];
    return command
      .replace('https://shop.example', this.#shop.nginx.url)
      .replace('localhost:8080', `localhost:${apiPort}`)
      .replace('9103', String(api))
      .replace('9101', String(worker))
      .replace('9102', String(keeper));
  }

  get #env(): NodeJS.ProcessEnv {
    const { stack } = this.#shop;
    const { servers } = stack;
    const redis = new URL(stack.env.REDIS_URL);
    const units = [
      ...PLACES.map((place) => `seckill-${place} ${this.#shop.program(place).pid}`),
      `mysql ${servers.server('mysql').pid() ?? ''}`,
    ];
    return {
      ...process.env,
      ...stack.env,
      NODE: process.execPath,
      MAIN: BUILT_MAIN,
      TOOLS: join(this.#tools, 'bin'),
      LIBRARIES: ['x86_64', 'aarch64'].map((machine) => join(this.#tools, `lib/${machine}-linux-gnu`)).join(':'),
      MYSQL_SOCKET: servers.mysqlSocket,
      REDIS_PORT: redis.port,
      REDISCLI_AUTH: decodeURIComponent(redis.password), // a URL would make redis-cli log in as a user without a name
      LOGS: join(servers.dir, 'log', 'programs'),
      UNITS: units.join('\n'),
    };
  }
}

/** Returns the first lines of an output, for a report. */
export function firstLines(output: string): string[] {
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  return lines.slice(0, LINES_SHOWN).map((line) => (line.length > LINE_SHOWN ? `${line.slice(0, LINE_SHOWN)}…` : line));
}
