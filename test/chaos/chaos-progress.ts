import { nameOf, type Row, type RowResult } from './row.js';
import { seconds } from '../../deploy/local/stack-progress.js';

const ROW_WIDTH = 24;

/** News of a run: one line per row that ended; on a terminal a last line says what runs. */
export class ChaosProgress {
  readonly #total: number;
  readonly #json: boolean;
  readonly #live: boolean;
  readonly #running: string[] = [];
  #ended = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(total: number, json: boolean) {
    this.#total = total;
    this.#json = json;
    this.#live = !json && process.stdout.isTTY === true;
  }

  seeds(seeds: readonly number[]): void {
    if (this.#json) console.log(JSON.stringify({ result: 'seeds', seeds }));
    else console.log(`Seeds: ${seeds.join(' ')}`);
  }

  begin(row: Row): void {
    this.#running.push(nameOf(row));
    if (this.#live) this.#timer ??= setInterval(() => this.#draw(), 1000);
    this.#draw();
  }

  end(result: RowResult): void {
    this.#ended++;
    this.#running.splice(this.#running.indexOf(result.row), 1);
    if (this.#json) console.log(JSON.stringify({ result: 'row', ...result }));
    else this.say(lineOf(result));
    this.#draw();
  }

  /** What the programs of a row that failed wrote last. */
  logs(text: string): void {
    this.#wipe();
    console.error(text);
  }

  say(line: string): void {
    this.#wipe();
    if (!this.#json) console.log(line);
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#wipe();
  }

  #draw(): void {
    if (!this.#live || this.#running.length === 0) return;
    const width = (process.stdout.columns ?? 80) - 1;
    const line = `${this.#ended} of ${this.#total} done, running: ${this.#running.join(' ')}`;
    process.stdout.write(`\r\x1b[K${line.slice(0, width)}`);
  }

  #wipe(): void {
    if (this.#live) process.stdout.write('\r\x1b[K');
  }
}

function lineOf({ row, seed, outcome, reason, recoveryMs, tookMs, bites, findings }: RowResult): string {
  const name = row.padEnd(ROW_WIDTH);
  switch (outcome) {
    case 'green': {
      const recovery = recoveryMs === null ? '' : `, at rest ${seconds(recoveryMs)} after it`;
      return `✓ ${name} ${seconds(tookMs).padStart(7)}  ${bites.join(', ')}${recovery}`;
    }
    case 'red':
      return (
        `✗ ${name} ${seconds(tookMs).padStart(7)}  ${reason}\n` +
        findings.map((finding) => `  the books: ${finding}\n`).join('') +
        `  again: npm run chaos -- run ${row} --seed ${seed}`
      );
    case 'skipped':
      return `- ${name} skipped: ${reason}`;
  }
}
