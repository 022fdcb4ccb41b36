import { cpuTimes } from '../../../bench/session/cpu.js';
import { SERVER_NAMES } from '../../../deploy/local/stack/servers/server-spec.js';
import type { StackControls } from '../harness/stack-controls.js';
import type { Buyers } from './buyers.js';
import type { LongPrograms } from './samples.js';

/** Measures the CPU of programs, servers, buyers and this process, which runs the checks. */
export class CpuMeter {
  /** CPU seconds of each process id when it was last seen. */
  readonly #used = new Map<number, { readonly who: string; readonly seconds: number }>();

  read(stack: StackControls, programs: LongPrograms, buyers: Buyers): void {
    for (const { program } of programs.running()) this.#see(program.name, program.pid);
    for (const name of SERVER_NAMES) this.#see(name, stack.servers.server(name).pid());
    this.#see('buyers', buyers.pid);
    this.#see('harness', process.pid);
  }

  /** Returns CPU seconds by name. A killed program and its replacement both count. */
  totals(): Record<string, number> {
    const totals: Record<string, number> = {};
    for (const { who, seconds } of this.#used.values()) {
      totals[who] = Math.round(((totals[who] ?? 0) + seconds) * 100) / 100;
    }
    return totals;
  }

  #see(who: string, pid: number | null | undefined): void {
    const times = pid === null || pid === undefined ? null : cpuTimes(pid);
    if (times !== null && pid) this.#used.set(pid, { who, seconds: times.own });
  }
}
