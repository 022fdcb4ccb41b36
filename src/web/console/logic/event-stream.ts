/** One event of a `text/event-stream`. */
export interface ServerEvent {
  readonly event: string;
  readonly data: string;
}

/** Reads a `text/event-stream` from its pieces, however it was cut. Ids and `retry` are of no use here and left out. */
export class EventStreamParser {
  #rest = '';
  #event = '';
  #data: string[] = [];

  /** @returns the events that have ended with this piece */
  push(piece: string): ServerEvent[] {
    const text = this.#rest + piece;
    const events: ServerEvent[] = [];
    let from = 0;
    for (let at = from; at < text.length; at++) {
      const char = text[at];
      if (char !== '\n' && char !== '\r') continue;
      if (char === '\r' && at + 1 === text.length) break; // its \n may come with the next piece
      const event = this.#line(text.slice(from, at));
      if (event !== null) events.push(event);
      if (char === '\r' && text[at + 1] === '\n') at++;
      from = at + 1;
    }
    this.#rest = text.slice(from);
    return events;
  }

  #line(line: string): ServerEvent | null {
    if (line === '') return this.#end();
    const colon = line.indexOf(':');
    if (colon === 0) return null; // a comment
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') this.#event = value;
    if (field === 'data') this.#data.push(value);
    return null;
  }

  #end(): ServerEvent | null {
    const [event, data] = [this.#event || 'message', this.#data];
    this.#event = '';
    this.#data = [];
    return data.length === 0 ? null : { event, data: data.join('\n') };
  }
}
