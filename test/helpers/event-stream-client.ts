import { request, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { afterGranted } from '../../deploy/local/stack/granted-time.js';
import { GRANTED_MS, until } from '../chaos/harness/wait.js';

export interface ReceivedEvent {
  readonly id: string;
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Reads a `text/event-stream` without reconnecting. */
export class EventStreamClient {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly events: ReceivedEvent[] = [];
  comments = 0;
  retryMs: number | null = null;
  ended = false;
  /** Everything received, or the body if the answer is not a stream. */
  text = '';
  readonly #response: IncomingMessage;

  private constructor(response: IncomingMessage) {
    this.#response = response;
    this.status = response.statusCode ?? 0;
    this.headers = response.headers;
    response.setEncoding('utf8');
    let rest = '';
    response.on('data', (chunk: string) => {
      this.text += chunk;
      const blocks = (rest + chunk).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) this.#readBlock(block);
    });
    response.on('error', () => undefined);
    response.on('close', () => (this.ended = true));
  }

  /** @throws if no answer begins */
  static open(
    url: string,
    { token, lastEventId }: { readonly token?: string; readonly lastEventId?: string },
  ): Promise<EventStreamClient> {
    return new Promise((resolve, reject) => {
      const headers = {
        Connection: 'keep-alive', // as browsers send it; the server decides whether the connection closes
        ...(token === undefined ? {} : { Authorization: token.startsWith('Bearer ') ? token : `Bearer ${token}` }),
        ...(lastEventId === undefined ? {} : { 'Last-Event-ID': lastEventId }),
      };
      const sent = request(url, { headers, agent: false });
      const cancel = afterGranted(GRANTED_MS, () => sent.destroy(new Error('no answer in time')));
      sent.on('error', reject);
      sent.on('response', (response) => {
        cancel();
        resolve(new EventStreamClient(response));
      });
      sent.end();
    });
  }

  get eventNames(): string[] {
    return this.events.map(({ event }) => event);
  }

  /** Waits until an event of this name is received. */
  received(name: string): Promise<void> {
    return until(`event ${name} (received: ${this.eventNames.join()})`, () => this.eventNames.includes(name), {
      everyMs: 10,
    });
  }

  end(): Promise<void> {
    return until(`the end of the stream (received: ${this.eventNames.join()})`, () => this.ended, { everyMs: 10 });
  }

  close(): void {
    this.#response.destroy();
  }

  #readBlock(block: string): void {
    const fields = new Map(
      block.split('\n').map((line): [string, string] => {
        const colon = line.indexOf(':');
        return [line.slice(0, colon), line.slice(colon + 1).trimStart()];
      }),
    );
    if (fields.has('')) this.comments++;
    if (fields.has('retry')) this.retryMs = Number(fields.get('retry'));
    const [id = '', event, data] = ['id', 'event', 'data'].map((name) => fields.get(name));
    if (event !== undefined && data !== undefined) {
      this.events.push({ id, event, data: JSON.parse(data) as Record<string, unknown> });
    }
  }
}
