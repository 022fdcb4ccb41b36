/**
 * Several folders of tests run at once and one terminal shows them: one of them writes at once, what the others write waits
 * until it is their turn, so that lines never mix.
 */
export class Outputs {
  readonly #waiting: Output[] = [];
  readonly #print: (text: string) => void;
  #current: Output | null = null;

  constructor(print: (text: string) => void = (text) => void process.stdout.write(text)) {
    this.#print = print;
  }

  open(): Output {
    const output = new Output((text) => {
      if (output === this.#current) this.#print(text);
      else output.held += text;
      if (output.ended) this.#next();
    });
    this.#waiting.push(output);
    this.#next();
    return output;
  }

  /** Shows all that have ended, then the one that has waited longest. */
  #next(): void {
    if (this.#current !== null && !this.#current.ended) return;
    this.#current = null;
    const isOver = (output: Output): boolean => output.ended;
    for (const output of this.#waiting.filter(isOver)) this.#show(output);
    const next = this.#waiting[0];
    if (next === undefined) return;
    this.#current = next;
    this.#show(next);
  }

  #show(output: Output): void {
    this.#waiting.splice(this.#waiting.indexOf(output), 1);
    this.#print(output.held);
    output.held = '';
  }
}

export class Output {
  /** Written, not shown yet. */
  held = '';
  ended = false;
  readonly #onText: (text: string) => void;

  constructor(onText: (text: string) => void) {
    this.#onText = onText;
  }

  write(text: string): void {
    this.#onText(text);
  }

  end(): void {
    this.ended = true;
    this.#onText('');
  }
}
