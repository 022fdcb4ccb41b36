import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

/** The fields of an OTLP span that we read (opentelemetry-proto, trace/v1). */
interface OtlpSpan {
  /** `service.name` of its resource. */
  readonly service: string;
  readonly traceId: string;
  readonly spanId: string;
  /** '' or absent for the first span of a trace. */
  readonly parentSpanId?: string;
  readonly name: string;
  /** 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  readonly kind: number;
  /** ns since 1970, in decimal. */
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes?: readonly OtlpAttribute[];
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  /** Code 2 means that the span failed. */
  readonly status?: { readonly code?: number; readonly message?: string };
}

interface OtlpAttribute {
  readonly key: string;
  readonly value: {
    readonly stringValue?: string;
    readonly intValue?: number | string;
    readonly doubleValue?: number;
    readonly boolValue?: boolean;
  };
}

interface OtlpRequest {
  readonly resourceSpans?: readonly {
    readonly resource?: { readonly attributes?: readonly OtlpAttribute[] };
    readonly scopeSpans?: readonly { readonly spans?: readonly Omit<OtlpSpan, 'service'>[] }[];
  }[];
}

/** Returns the spans in the body of `POST /v1/traces`. */
function spansIn(body: string): OtlpSpan[] {
  const { resourceSpans = [] } = JSON.parse(body) as OtlpRequest;
  return resourceSpans.flatMap(({ resource, scopeSpans = [] }) => {
    const service = textsOf(resource?.attributes)['service.name'] ?? 'unknown';
    return scopeSpans.flatMap(({ spans = [] }) => spans.map((span) => ({ ...span, service })));
  });
}

/** Returns attributes as texts. */
const textsOf = (attributes: readonly OtlpAttribute[] = []): Record<string, string> =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      String(value.stringValue ?? value.intValue ?? value.doubleValue ?? value.boolValue ?? ''),
    ]),
  );

/** A span that a program has sent. */
export interface CollectedSpan extends OtlpSpan {
  readonly fields: Readonly<Record<string, string>>;
}

/** A stand-in for an OTLP collector. Receives spans over HTTP in JSON and keeps them. */
export class OtlpCollector {
  readonly spans: CollectedSpan[] = [];
  /** Headers of every request. */
  readonly headers: Readonly<Record<string, unknown>>[] = [];
  /** Refuses requests with this status, or, if 0, by not answering. */
  refuses: number | null = null;
  readonly url: string;
  readonly #server;

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(): Promise<OtlpCollector> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const collector = new OtlpCollector(server);
    server.on('request', (req, res) => {
      collector.headers.push(req.headers);
      let body = '';
      req.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
      req.once('end', () => {
        if (collector.refuses === 0) return;
        if (collector.refuses !== null) return void res.writeHead(collector.refuses).end();
        if (req.url !== '/v1/traces') return void res.writeHead(404).end();
        collector.spans.push(...spansIn(body).map((span) => ({ ...span, fields: textsOf(span.attributes) })));
        res.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
      });
    });
    return collector;
  }

  ofTrace(traceId: string): CollectedSpan[] {
    return this.spans.filter((span) => span.traceId === traceId);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
