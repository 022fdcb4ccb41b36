import { cpuTimes } from '../../../bench/session/cpu.js';
import { SERVER_NAMES } from '../../../deploy/local/stack/servers/server-spec.js';
import type { StackControls } from '../harness/stack-controls.js';
import type { SoakPrograms } from './samples.js';
import type { YearLoad } from './buyers.js';

/** Who uses CPU: the programs, the servers, the buyers, and this process, which checks books. */
export class CpuMeter {
  /** pid → what it has used until it was last seen. */
  readonly #used = new Map<number, { readonly who: string; readonly seconds: number }>();

  read(stack: StackControls, programs: SoakPrograms, load: YearLoad): void {
    for (const { program } of programs.running()) this.#see(program.name, program.pid);
    for (const name of SERVER_NAMES) this.#see(name, stack.servers.server(name).pid());
    this.#see('buyers', load.pid);
    this.#see('harness', process.pid);
  }

  /** CPU seconds since each process began, both lives of one that was killed. */
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
