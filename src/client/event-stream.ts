export interface StreamedEvent {
  /** What to send as `Last-Event-ID`; null: the event has none. */
  readonly id: string | null;
  readonly event: string;
  readonly data: string;
}

/** Reads `text/event-stream` from a fetch, in pieces as they come: EventSource of the browser can send no token. */
export class EventStreamReader {
  /** How long the server asks to wait before the next connection, ms; null: it has not said. */
  retryMs: number | null = null;
  #rest = '';
  #id: string | null = null;
  #event = '';
  #data: string[] = [];

  /** @returns the events that are whole now */
  push(text: string): StreamedEvent[] {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    const events: StreamedEvent[] = [];
    for (const line of lines) this.#line(line.endsWith('\r') ? line.slice(0, -1) : line, events);
    return events;
  }

  #line(line: string, events: StreamedEvent[]): void {
    if (line === '') {
      if (this.#data.length > 0) {
        events.push({ id: this.#id, event: this.#event || 'message', data: this.#data.join('\n') });
      }
      this.#id = null;
      this.#event = '';
      this.#data = [];
      return;
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'id') this.#id = value;
    else if (field === 'event') this.#event = value;
    else if (field === 'data') this.#data.push(value);
    else if (field === 'retry' && /^\d+$/.test(value)) this.retryMs = Number(value);
  }
}
