import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { claimedPorts, listeningPorts, pickFreePorts } from '../../deploy/local/stack/ports.js';
import { tryLock } from '../../deploy/local/stack/processes.js';
import { StackError } from '../../deploy/local/stack/stack-error.js';
import { openStack, type Stack } from '../../deploy/local/stack/stack.js';
import { openControls } from '../chaos/harness/stack-controls.js';
import { prepareStack } from '../chaos/own-stacks.js';
import { readFacts } from '../chaos/report.js';

const STACK_DIR = join(REPO_DIR, '.stack-test');

/** The set of servers. `plain` and `plain-2` are alike. */
export type ServersName = 'plain' | 'plain-2' | 'secure';

/** The servers of a test run, on their own ports and in their own folders. Each set boots when first requested. */
export class TestServers {
  readonly #signal: AbortSignal;
  readonly #lock: { release: () => void };
  readonly #stacks = new Map<ServersName, Stack>();
  readonly #booted = new Map<ServersName, Promise<NodeJS.ProcessEnv>>();

  /** @throws StackError while another process runs tests in this checkout */
  constructor(signal: AbortSignal) {
    this.#signal = signal;
    const lock = tryLock(`${STACK_DIR}.lock`);
    if ('heldBy' in lock) throw new StackError(`Process ${lock.heldBy} runs tests in this checkout. Wait for its end.`);
    this.#lock = lock;
  }

  /** @returns the environment of tests that use these servers. @throws StackError */
  envOf(name: ServersName): Promise<NodeJS.ProcessEnv> {
    const known = this.#booted.get(name);
    if (known !== undefined) return known;
    const booted = this.#boot(name);
    this.#booted.set(name, booted);
    return booted;
  }

  /** Kills all other servers, because even an idle broker uses CPU. */
  async keepOnly(kept: ServersName | null): Promise<void> {
    const others = [...this.#stacks].filter(([name]) => name !== kept);
    await Promise.all(others.map(([, stack]) => stack.down({ signal: 'SIGKILL' })));
    for (const [name] of others) {
      this.#stacks.delete(name);
      this.#booted.delete(name);
    }
  }

  async close(): Promise<void> {
    await this.keepOnly(null);
    this.#lock.release();
  }

  /** Name → version, as reported by the plain servers. */
  async versions(): Promise<Readonly<Record<string, string>>> {
    const stack = this.#stacks.get('plain');
    if (stack === undefined) return {};
    const controls = await openControls(stack.dir, stack.env());
    try {
      return (await readFacts(controls)).versions;
    } finally {
      await controls.close();
    }
  }

  async #boot(name: ServersName): Promise<NodeJS.ProcessEnv> {
    const dir = name === 'plain' ? STACK_DIR : `${STACK_DIR}-${name}`;
    // removes data of an earlier run
    await openStack({ dir, ports: 'free' }).down({ signal: 'SIGKILL' });
    rmSync(dir, { recursive: true, force: true });
    const taken = [...this.#stacks.values()].flatMap(({ ports }) => claimedPorts(ports));
    const ports = pickFreePorts([...listeningPorts(), ...taken]);
    const stack = openStack({ dir, ports, secure: name === 'secure', timing: 'test' });
    this.#stacks.set(name, stack);
    await stack.up({ topics: false, signal: this.#signal });
    await prepareStack(stack);
    return { ...process.env, ...stack.env(), SECKILL_TEST_STACK: stack.dir };
  }
}
