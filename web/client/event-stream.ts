export interface StreamedEvent {
  /** Value to send as `Last-Event-ID`. Null if the event has no id. */
  readonly id: string | null;
  readonly event: string;
  readonly data: string;
}

/** Reads `text/event-stream` from a fetch, piece by piece, because the browser's EventSource cannot send a token. */
export class EventStreamReader {
  /** How long the server asks to wait before the next connection, ms. Null if it asks for no wait. */
  retryMs: number | null = null;
  #rest = '';
  #id: string | null = null;
  #event = '';
  #data: string[] = [];

  /** @returns the events that are complete now */
  push(piece: string): StreamedEvent[] {
    const text = this.#rest + piece;
    const events: StreamedEvent[] = [];
    let from = 0;
    for (let at = 0; at < text.length; at++) {
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

  #line(line: string): StreamedEvent | null {
    if (line === '') return this.#end();
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon); // a comment has an empty field name
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'id') this.#id = value;
    else if (field === 'event') this.#event = value;
    else if (field === 'data') this.#data.push(value);
    else if (field === 'retry' && /^\d+$/.test(value)) this.retryMs = Number(value);
    return null;
  }

  #end(): StreamedEvent | null {
    const [id, event, data] = [this.#id, this.#event || 'message', this.#data];
    this.#id = null;
    this.#event = '';
    this.#data = [];
    return data.length === 0 ? null : { id, event, data: data.join('\n') };
  }
}
