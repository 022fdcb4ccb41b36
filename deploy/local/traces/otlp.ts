/** The fields of an OTLP span in JSON that are read here (opentelemetry-proto, trace/v1). */
export interface OtlpSpan {
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

/** Returns the spans in the body of `POST /v1/traces`. @throws SyntaxError if the body is not JSON */
export function spansIn(body: string): OtlpSpan[] {
  const { resourceSpans = [] } = JSON.parse(body) as OtlpRequest;
  return resourceSpans.flatMap(({ resource, scopeSpans = [] }) => {
    const service = textsOf(resource?.attributes)['service.name'] ?? 'unknown';
    return scopeSpans.flatMap(({ spans = [] }) => spans.map((span) => ({ ...span, service })));
  });
}

/** Returns attributes as texts. */
export const textsOf = (attributes: readonly OtlpAttribute[] = []): Record<string, string> =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      String(value.stringValue ?? value.intValue ?? value.doubleValue ?? value.boolValue ?? ''),
    ]),
  );
