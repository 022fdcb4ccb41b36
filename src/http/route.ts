import type { IncomingMessage, ServerResponse } from 'node:http';
import type { z } from 'zod';
import { PROBLEMS, type ProblemCode } from '../contract/problem.js';
import { fieldErrors, fieldSentences, plainError, type FieldError } from '../core/field-errors.js';
import { isId } from '../core/ids.js';
import { parseJson } from '../core/parse-json.js';
import type { Span } from '../core/ports/tracing.js';
import type { Role } from '../core/roles.js';
import type { TraceParent } from '../core/trace-context.js';
import type { AdmissionRequest, Endpoint } from '../admission/layer.js';
import type { SignatureHead } from '../admission/sign/request-signatures.js';
import { parentOf, problem, type Answer, type AnswerCounter, type Lifecycle } from './answer.js';
import { BODY_BYTES_MAX, promisesJson } from './body.js';
import type { HttpRoute } from './metrics.js';
import { type ProblemParts } from './problem.js';
import type { HttpServices } from './services.js';

/** What handlers work with. */
export interface RouteServices extends HttpServices {
  readonly lifecycle: Lifecycle;
  /** The OpenAPI document of each listener, as JSON. */
  readonly openapi: (listener: Listener) => string;
}

/**
 * Where the api listens. What is only for operators and monitoring is not found where buyers are, so a firewall, or the
 * loopback address, can keep everybody else from it.
 */
export type Listener = 'buyers' | 'operators';
const BUYERS = ['buyers'] as const;
const OPERATORS = ['operators'] as const;

/** Every address of buyers begins with it, so that requests for others cost a comparison. */
export const API_PREFIX = '/v1/';

/**
 * What a route requires of its callers, where it is served, and the problems it may answer because of that. The pipeline
 * reads this table; whether a route passes the layers of admission is its `endpoint`.
 */
const ACCESS = {
  /** The payment provider, and load balancers. */
  none: { listeners: BUYERS, signed: false, proofs: false, token: false, role: null, codes: ['rate_limited'] },
  /** Is the process alive? */
  liveness: {
    listeners: ['buyers', 'operators'],
    signed: false,
    proofs: false,
    token: false,
    role: null,
    codes: ['rate_limited'],
  },
  monitoring: {
    listeners: OPERATORS,
    signed: false,
    proofs: false,
    token: false,
    role: null,
    codes: ['misdirected', 'rate_limited'],
  },
  anyone: {
    listeners: BUYERS,
    signed: false,
    proofs: false,
    token: false,
    role: null,
    codes: ['denied', 'rate_limited', 'degraded'],
  },
  buyer: {
    listeners: BUYERS,
    signed: false,
    proofs: false,
    token: true,
    role: null,
    codes: ['unauthorized', 'denied', 'rate_limited', 'degraded'],
  },
  /** A request of a buyer about a sale, signed where the sale requires it. */
  sale_buyer: {
    listeners: BUYERS,
    signed: true,
    proofs: false,
    token: true,
    role: null,
    codes: ['bad_signature', 'unauthorized', 'denied', 'rate_limited', 'degraded', 'payload_too_large'],
  },
  /** A purchase: signed, with a queue pass and a purchase token, where the sale requires them. */
  purchase: {
    listeners: BUYERS,
    signed: true,
    proofs: true,
    token: true,
    role: null,
    codes: [
      'bad_signature',
      'unauthorized',
      'denied',
      'rate_limited',
      'degraded',
      'queue_pass_needed',
      'purchase_token_needed',
      'unpaid_pause',
    ],
  },
  /** A caller with this role in their token, or one that includes it. Of admission only the list of denied users refuses them. */
  viewer: {
    listeners: OPERATORS,
    signed: false,
    proofs: false,
    token: true,
    role: 'viewer',
    codes: ['misdirected', 'unauthorized', 'role_needed', 'denied', 'rate_limited'],
  },
  operator: {
    listeners: OPERATORS,
    signed: false,
    proofs: false,
    token: true,
    role: 'operator',
    codes: ['misdirected', 'unauthorized', 'role_needed', 'denied', 'rate_limited'],
  },
  admin: {
    listeners: OPERATORS,
    signed: false,
    proofs: false,
    token: true,
    role: 'admin',
    codes: ['misdirected', 'unauthorized', 'role_needed', 'denied', 'rate_limited'],
  },
} as const satisfies Record<string, AccessRow>;

interface AccessRow {
  readonly listeners: readonly Listener[];
  /** Signed, where the sale requires it. */
  readonly signed: boolean;
  /** With a queue pass and a purchase token, where the sale requires them, by a buyer without too many unpaid orders. */
  readonly proofs: boolean;
  readonly token: boolean;
  /** What operators need; null: nothing. */
  readonly role: Role | null;
  readonly codes: readonly ProblemCode[];
}
export type Access = keyof typeof ACCESS;

/** One success that a route may answer. */
export interface AnswerSpec {
  readonly description: string;
  /** Of the JSON body; left out: there is none, or it is text of `type`. With both it is one or the other. */
  readonly schema?: z.ZodType;
  readonly type?: string | readonly string[];
  /** Headers that a client needs, with what they say. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** How a body is read. */
export interface BodySpec<B> {
  readonly schema: z.ZodType;
  readonly required: boolean;
  readonly bytesMax: number;
  /** The body, or what the 400 says of it. */
  read(text: string, services: RouteServices): BodyRead<B>;
}
export type BodyRead<B> = { readonly value: B } | { readonly wrong: ProblemParts };

/** A header that the document describes; handlers read it themselves. */
export interface HeaderSpec {
  readonly name: string;
  readonly required: boolean;
  readonly description: string;
  readonly schema: z.ZodType;
}

/** Problems that any route may answer, and those that come with what it asks. */
type CommonCode = (typeof ALWAYS)[number];
type CodeOf<A extends Access> = (typeof ACCESS)[A]['codes'][number];

interface RouteSpec<P, Q, B, S extends number, C extends ProblemCode, A extends Access> {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** Parameters as `{name}`, the way OpenAPI writes them. */
  readonly path: string;
  /** What its answers are counted under. */
  readonly label: HttpRoute;
  readonly operationId: string;
  readonly summary: string;
  readonly access: A;
  /** As the rules of admission call it; null: no layer is asked. */
  readonly endpoint: Endpoint | null;
  readonly params?: z.ZodType<P>;
  readonly query?: z.ZodType<Q>;
  readonly headers?: readonly HeaderSpec[];
  readonly body?: BodySpec<B>;
  readonly answers: Readonly<Record<S, AnswerSpec>>;
  /** Problems of its own; those of its access, its input and of every route are added. */
  readonly problems: readonly C[];
  /** Replaces the check of params, query and media type, where zod would cost too much. Null: fine. */
  readonly checkHead?: (call: Call<P, Q, B>) => Answer | null;
  /** An answer from memory, before limits are counted and the body is read. */
  readonly early?: (call: Call<P, Q, B>, services: RouteServices) => Answer<NoInfer<C> | CommonCode> | null;
  readonly handle: (
    call: Call<P, Q, B>,
    services: RouteServices,
  ) => Reply<NoInfer<S | C> | CodeOf<A>> | Promise<Reply<NoInfer<S | C> | CodeOf<A>>>;
}
/** Null: the handler has written the answer itself. */
type Reply<K extends number | ProblemCode> = Answer<K | CommonCode> | null;

type AnySpec = RouteSpec<unknown, unknown, unknown, number, ProblemCode, Access>;
/** A route as the pipeline and the OpenAPI document see it. */
export interface Route extends Omit<AnySpec, keyof Loose> {
  readonly asks: AccessRow;
  /** Every problem that it may answer. */
  readonly codes: readonly ProblemCode[];
  checkHead(call: Call): Answer | null;
  readonly early: ((call: Call, services: RouteServices) => Answer | null) | null;
  readonly handle: (call: Call, services: RouteServices) => Answer | null | Promise<Answer | null>;
}
type Loose = Pick<AnySpec, 'checkHead' | 'early' | 'handle'>;

const ALWAYS = ['bad_request', 'internal', 'unavailable'] as const;
const OF_A_BODY = ['payload_too_large', 'unsupported_media_type'] as const;

/** One route: what it takes, what it answers, and the handler, which can answer nothing else. */
export function defineRoute<P, Q, B, S extends number, C extends ProblemCode, A extends Access>(
  spec: RouteSpec<P, Q, B, S, C, A>,
): Route {
  const asks: AccessRow = ACCESS[spec.access];
  const codes: ProblemCode[] = [...asks.codes, ...(spec.body ? OF_A_BODY : []), ...spec.problems, ...ALWAYS];
  const { params, query, body, checkHead, early, handle, ...rest } = spec;
  return {
    ...rest,
    ...(params ? { params } : {}),
    ...(query ? { query } : {}),
    ...(body ? { body } : {}),
    asks,
    codes: [...new Set(codes)].sort((a, b) => PROBLEMS[a].status - PROBLEMS[b].status),
    checkHead: (checkHead as Route['checkHead'] | undefined) ?? ((call) => checkedHead(call, spec)),
    early: (early as Route['early'] | undefined) ?? null,
    handle: handle as Route['handle'],
  };
}

/** One request on its way through the pipeline. */
export class Call<P = unknown, Q = unknown, B = unknown> {
  readonly route: Route;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly counter: AnswerCounter;
  readonly startedMs = performance.now();
  /** Where its caller says that it belongs; null: nowhere, or not well-formed. */
  readonly parent: TraceParent | null;
  /** What its answer says; '' until it is known. */
  traceId: string;
  /** Null: it is not recorded. */
  span: Span | null = null;
  /** The Idempotency-Key, or the request id in the address; null: none, or not a well-formed one. */
  readonly requestId: string | null;
  params: P;
  query: Q;
  body: B;
  /** As the token names them; empty without one. */
  userId = '';
  roles: readonly string[] = [];
  /** The end of the token, Unix ms; only of a route that asks for a role. */
  expiresAtMs = 0;
  /** What admission judges; null: it is off, or has nothing to do with this route. */
  admitted: AdmissionRequest | null = null;
  /** Null: no signature is asked for. */
  signature: SignatureHead | null = null;
  /** The end of the purchase token, Unix ms; null: none is asked for. */
  tokenEndsAtMs: number | null = null;

  constructor(
    route: Route,
    counter: AnswerCounter,
    req: IncomingMessage,
    res: ServerResponse,
    params: P,
    query: Q,
    body: B,
  ) {
    this.route = route;
    this.counter = counter;
    this.req = req;
    this.res = res;
    this.parent = parentOf(req);
    this.traceId = this.parent === null ? '' : this.parent.traceId;
    const key = req.headers['idempotency-key']; // given twice it arrives joined by a comma, which no id holds
    this.requestId = isId(key) ? key : null;
    this.params = params;
    this.query = query;
    this.body = body;
  }

  /** The path that an app has our router below; empty where there is none. Addresses in answers begin with it. */
  get mount(): string {
    return (this.req as { readonly baseUrl?: string }).baseUrl ?? '';
  }

  /** The sale in the address of a route about one. */
  get saleId(): string {
    return (this.params as { readonly saleId: string }).saleId;
  }
}

/** 400 for fields, each with its sentence. */
export const badFields = (errors: readonly FieldError[], requestId: string | null = null): Answer<'bad_request'> =>
  problem('bad_request', { requestId, detail: fieldSentences(errors), errors });

function checkedHead(
  call: Call,
  { params, query, body }: { params?: z.ZodType; query?: z.ZodType; body?: unknown },
): Answer | null {
  const errors: FieldError[] = [];
  if (params) {
    const read = params.safeParse(call.params, { error: plainError });
    if (read.success) call.params = read.data;
    else errors.push(...fieldErrors(read.error));
  }
  if (query) {
    const read = query.safeParse(call.query, { error: plainError });
    if (read.success) call.query = read.data;
    else errors.push(...fieldErrors(read.error));
  }
  if (errors.length > 0) return badFields(errors, call.requestId ?? namedIn(call.params));
  if (body !== undefined && !promisesJson(call.req.headers)) {
    return problem('unsupported_media_type', { requestId: call.requestId });
  }
  return null;
}

function namedIn(params: unknown): string | null {
  const { requestId } = params as { readonly requestId?: unknown };
  return isId(requestId) ? requestId : null;
}

/**
 * A body that is JSON.
 * @param schema for the document
 * @param check gives the body, or what is wrong with it
 */
export const checkedBody = <B>(
  schema: z.ZodType,
  check: (json: unknown, services: RouteServices) => { readonly value: B } | { readonly errors: readonly FieldError[] },
  bytesMax = BODY_BYTES_MAX,
): BodySpec<B> => ({
  schema,
  required: true,
  bytesMax,
  read(text, services) {
    const json = parseJson(text, 'The body');
    if ('error' in json) return { wrong: { detail: json.error } };
    const read = check(json.value, services);
    return 'value' in read ? read : { wrong: { detail: fieldSentences(read.errors), errors: read.errors } };
  },
});

/** A body that is JSON of this schema. */
export const jsonBody = <B>(schema: z.ZodType<B>, bytesMax?: number): BodySpec<B> =>
  checkedBody<B>(
    schema,
    (json) => {
      const read = schema.safeParse(json, { error: plainError });
      return read.success ? { value: read.data } : { errors: fieldErrors(read.error) };
    },
    bytesMax,
  );

/** The same where it may be left out. @param empty what no body stands for */
export const optionalJsonBody = <B>(schema: z.ZodType<B>, empty: B): BodySpec<B> => {
  const sent = jsonBody(schema);
  return {
    ...sent,
    required: false,
    read: (text, services) => (text === '' ? { value: empty } : sent.read(text, services)),
  };
};
