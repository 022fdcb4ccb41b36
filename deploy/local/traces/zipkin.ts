import { textsOf, type OtlpSpan } from './otlp.js';

/** A span in Zipkin's v2 JSON format; times in µs. */
export interface ZipkinSpan {
  readonly traceId: string;
  readonly id: string;
  readonly parentId?: string;
  readonly name: string;
  readonly kind?: 'SERVER' | 'CLIENT' | 'PRODUCER' | 'CONSUMER';
  readonly timestamp: number;
  readonly duration: number;
  readonly localEndpoint: { readonly serviceName: string };
  readonly tags: Readonly<Record<string, string>>;
}

const KINDS: Readonly<Record<number, ZipkinSpan['kind']>> = { 2: 'SERVER', 3: 'CLIENT', 4: 'PRODUCER', 5: 'CONSUMER' };
const FAILED = 2;
const NS_PER_US = 1000n;
/** A batch may have many purchases, but more links are not useful. */
const LINKS_SHOWN = 20;

/**
 * Converts a span. Zipkin has no links, so each link becomes a tag with the address of its trace.
 * @param traceUrl returns the page of a trace
 */
export function zipkinSpanOf(span: OtlpSpan, traceUrl: (traceId: string) => string): ZipkinSpan {
  const { service, traceId, spanId, parentSpanId, name, kind, links = [], status } = span;
  const [startNs, endNs] = [BigInt(span.startTimeUnixNano), BigInt(span.endTimeUnixNano)];
  const others = links.filter((link) => link.traceId !== traceId).slice(0, LINKS_SHOWN);
  const linked = others.map((link, index) => [`link.${index + 1}`, traceUrl(link.traceId)] as const);
  return {
    traceId,
    id: spanId,
    ...(parentSpanId ? { parentId: parentSpanId } : {}),
    name,
    ...(KINDS[kind] ? { kind: KINDS[kind] } : {}),
    timestamp: Number(startNs / NS_PER_US),
    duration: Math.max(1, Number((endNs - startNs) / NS_PER_US)), // 0 would mean unknown
    localEndpoint: { serviceName: service },
    tags: {
      ...textsOf(span.attributes),
      ...Object.fromEntries(linked),
      ...(status?.code === FAILED ? { error: status.message ?? 'failed' } : {}),
    },
  };
}
