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

/** The services that handlers use. */
export interface RouteServices extends HttpServices {
  readonly lifecycle: Lifecycle;
  /** Returns the OpenAPI document of a listener, as JSON. */
  readonly openapi: (listener: Listener) => string;
}

/**
 * The listener of the api that serves a route. The listener for buyers does not serve routes for operators and
 * monitoring, so these can be protected by a firewall, or by listening only on the loopback address.
 */
export type Listener = 'buyers' | 'operators';
const BUYERS = ['buyers'] as const;
const OPERATORS = ['operators'] as const;

/** The prefix of every buyer address, so that one comparison dismisses all other requests. */
export const API_PREFIX = '/v1/';

const forOperators = <R extends Role>(role: R) =>
  ({
    listeners: OPERATORS,
    signed: false,
    proofs: false,
    token: true,
    role,
    codes: ['misdirected', 'unauthorized', 'role_needed', 'denied', 'rate_limited'],
  }) as const;

/**
 * The requirements of a route: its listeners, and the proofs and the role that its callers need, with the problems that
 * these may cause. The pipeline reads this table. The `endpoint` of a route determines whether the admission layers
 * apply.
 */
const ACCESS = {
  /** For the payment provider and load balancers. */
  none: { listeners: BUYERS, signed: false, proofs: false, token: false, role: null, codes: ['rate_limited'] },
  /** For probes that ask whether the process is alive. */
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
  /** For requests of a buyer about a sale, which are signed if the sale requires it. */
  sale_buyer: {
    listeners: BUYERS,
    signed: true,
    proofs: false,
    token: true,
    role: null,
    codes: ['bad_signature', 'unauthorized', 'denied', 'rate_limited', 'degraded', 'payload_too_large'],
  },
  /** For purchases: signed, with a queue pass and a purchase token, if the sale requires them. */
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
  /** For callers with this role or a higher role. Of the admission layers, only the list of denied users applies. */
  viewer: forOperators('viewer'),
  operator: forOperators('operator'),
  admin: forOperators('admin'),
} as const satisfies Record<string, AccessRow>;

interface AccessRow {
  readonly listeners: readonly Listener[];
  /** Whether requests must be signed, if the sale requires it. */
  readonly signed: boolean;
  /** Whether the sale may require a queue pass and a purchase token, and whether unpaid orders may pause the buyer. */
  readonly proofs: boolean;
  readonly token: boolean;
  /** The role that an operator needs. Null if none is needed. */
  readonly role: Role | null;
  readonly codes: readonly ProblemCode[];
}
export type Access = keyof typeof ACCESS;

/** A success that a route may return. */
export interface AnswerSpec {
  readonly description: string;
  /**
   * The schema of the JSON body. If left out, the answer has no body, or text of type `type`. If both are given, the
   * answer is either JSON or text.
   */
  readonly schema?: z.ZodType;
  readonly type?: string | readonly string[];
  /** Headers that a client needs, with their descriptions. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Describes how to read a body. */
export interface BodySpec<B> {
  readonly schema: z.ZodType;
  readonly required: boolean;
  readonly bytesMax: number;
  /** Returns the body, or the detail of the 400. */
  read(text: string, services: RouteServices): BodyRead<B>;
}
export type BodyRead<B> = { readonly value: B } | { readonly wrong: ProblemParts };

/** A header for the document. Handlers read the header themselves. */
export interface HeaderSpec {
  readonly name: string;
  readonly required: boolean;
  readonly description: string;
  readonly schema: z.ZodType;
}

/** Problems that any route may return, and problems that its access requirements add. */
type CommonCode = (typeof ALWAYS)[number];
type CodeOf<A extends Access> = (typeof ACCESS)[A]['codes'][number];

interface RouteSpec<P, Q, B, S extends number, C extends ProblemCode, A extends Access, X> {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** Parameters as `{name}`, as in OpenAPI. */
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly access: A;
  /** The label under which the answers are counted. Default: `admin`. */
  readonly label?: HttpRoute;
  readonly params?: z.ZodType<P>;
  readonly query?: z.ZodType<Q>;
  readonly headers?: readonly HeaderSpec[];
  readonly body?: BodySpec<B>;
  readonly answers: Readonly<Record<S, AnswerSpec>>;
  /**
   * Problems that only this route has. `defineRoute` adds the problems of its access, of its body, and those common to
   * all routes.
   */
  readonly problems?: readonly C[];
  /**
   * Replaces the check of parameters, query and media type where zod would cost too much. Returns null if the head is
   * valid.
   */
  readonly checkHead?: (call: Call<P, Q, B>) => Answer | null;
  /** Answers from memory, before the request counts against a limit and before the body is read. */
  readonly early?: (call: Call<P, Q, B>, services: RouteServices) => Answer<NoInfer<C> | CommonCode> | null;
  /** The handler. If it needs services `X` of a subject, the type of this parameter names them. */
  readonly handle: (
    call: Call<P, Q, B>,
    services: RouteServices & X,
  ) => Reply<NoInfer<S | C> | CodeOf<A>> | Promise<Reply<NoInfer<S | C> | CodeOf<A>>>;
}
/** Null if the handler has written the answer itself. */
type Reply<K extends number | ProblemCode> = Answer<K | CommonCode> | null;

type AnySpec = RouteSpec<unknown, unknown, unknown, number, ProblemCode, Access, unknown>;
/**
 * A route as the pipeline and the OpenAPI document see it.
 * @typeParam X the services that its handler needs in addition to those of every route. If X is left out, they are
 * unknown, and only the pipeline can call the handler
 */
export interface Route<X = never> extends Omit<AnySpec, keyof Loose> {
  readonly label: HttpRoute;
  /** The name of the endpoint in the admission rules. Null if the admission layers do not apply. */
  readonly endpoint: Endpoint | null;
  readonly asks: AccessRow;
  /** Every problem that the route may return. */
  readonly codes: readonly ProblemCode[];
  checkHead(call: Call): Answer | null;
  readonly early: ((call: Call, services: RouteServices) => Answer | null) | null;
  readonly handle: (call: Call, services: RouteServices & X) => Answer | null | Promise<Answer | null>;
}
type Loose = Pick<AnySpec, 'label' | 'checkHead' | 'early' | 'handle'>;

/** The names of endpoints in the admission rules. The admission layers do not apply to the other labels. */
const ENDPOINT_OF: Readonly<Partial<Record<HttpRoute, Endpoint>>> = {
  purchase: 'purchase',
  purchase_status: 'status',
  purchase_events: 'status',
  purchase_token: 'status',
  queue: 'status',
  sale: 'sale',
  order: 'order',
};

const ALWAYS = ['bad_request', 'internal', 'unavailable'] as const;
const OF_A_BODY = ['payload_too_large', 'unsupported_media_type'] as const;

/** Defines a route: its input, its answers, and a handler that can return no other answer. */
export function defineRoute<P, Q, B, S extends number, A extends Access, C extends ProblemCode = never, X = unknown>(
  spec: RouteSpec<P, Q, B, S, C, A, X>,
): Route<X> {
  const asks: AccessRow = ACCESS[spec.access];
  const codes: ProblemCode[] = [...asks.codes, ...(spec.body ? OF_A_BODY : []), ...(spec.problems ?? []), ...ALWAYS];
  const { label = 'admin', params, query, body, checkHead, early, handle, ...rest } = spec;
  return {
    ...rest,
    label,
    endpoint: ENDPOINT_OF[label] ?? null,
    ...(params ? { params } : {}),
    ...(query ? { query } : {}),
    ...(body ? { body } : {}),
    asks,
    codes: [...new Set(codes)].sort((a, b) => PROBLEMS[a].status - PROBLEMS[b].status),
    checkHead: (checkHead as Route['checkHead'] | undefined) ?? ((call) => checkedHead(call, spec)),
    early: (early as Route['early'] | undefined) ?? null,
    handle: handle as Route<X>['handle'],
  };
}

/** Defines a route for operators. The admission layers do not apply, and its answers are counted as `admin`. */
export const operatorRoute = <P, Q, B, S extends number, A extends Role, C extends ProblemCode = never, X = unknown>(
  spec: RouteSpec<P, Q, B, S, C, A, X>,
): Route<X> => defineRoute(spec);

/** The routes that listeners serve, and the services of all of them. */
export interface Api {
  readonly routes: readonly Route[];
  readonly services: HttpServices;
}

/** Combines routes and services. Does not compile if a route needs a service that is missing. */
export const apiOf = <X>(routes: readonly Route<X>[], services: HttpServices & X): Api => ({ routes, services });

export const routesOf = <R extends Route>(routes: readonly R[], listener: Listener): readonly R[] =>
  routes.filter(({ asks }) => asks.listeners.includes(listener));

/** A request on its way through the pipeline. */
export class Call<P = unknown, Q = unknown, B = unknown> {
  readonly route: Route;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly counter: AnswerCounter;
  readonly startedMs = performance.now();
  /** The trace parent that the caller sent. Null if missing or malformed. */
  readonly parent: TraceParent | null;
  /** The trace id of the answer. Empty until it is known. */
  traceId: string;
  /** Null if the request is not traced. */
  span: Span | null = null;
  /** The Idempotency-Key, or the request id in the address. Null if missing or malformed. */
  readonly requestId: string | null;
  params: P;
  query: Q;
  body: B;
  /** The user id in the token. Empty if the request has no token. */
  userId = '';
  roles: readonly string[] = [];
  /** When the token expires, Unix ms. Set only for a route that requires a role. */
  expiresAtMs = 0;
  /** The request as admission sees it. Null if admission is off or does not apply to this route. */
  admitted: AdmissionRequest | null = null;
  /** Whether admission was asked about the user. Earlier answers, such as sold_out from memory, say nothing about rules. */
  isJudged = false;
  /** Null if no signature is required. */
  signature: SignatureHead | null = null;
  /** When the purchase token expires, Unix ms. Null if no purchase token is required. */
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
    const key = req.headers['idempotency-key']; // Node joins repeated headers with a comma, which no id contains
    this.requestId = isId(key) ? key : null;
    this.params = params;
    this.query = query;
    this.body = body;
  }

  /** The path below which a host app mounts our router, or empty. Addresses in answers begin with it. */
  get mount(): string {
    return (this.req as { readonly baseUrl?: string }).baseUrl ?? '';
  }

  /** The sale in the address. Use it only in routes about a sale. */
  get saleId(): string {
    return (this.params as { readonly saleId: string }).saleId;
  }
}

/** Returns a 400 with a sentence for each wrong field. */
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
 * Describes a JSON body with its own check.
 * @param schema for the document
 * @param check returns the body or its errors
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

/** Describes a JSON body that the schema checks. */
export const jsonBody = <B>(schema: z.ZodType<B>, bytesMax?: number): BodySpec<B> =>
  checkedBody<B>(
    schema,
    (json) => {
      const read = schema.safeParse(json, { error: plainError });
      return read.success ? { value: read.data } : { errors: fieldErrors(read.error) };
    },
    bytesMax,
  );

/** Describes an optional JSON body. @param empty the value of a missing body */
export const optionalJsonBody = <B>(schema: z.ZodType<B>, empty: B): BodySpec<B> => {
  const sent = jsonBody(schema);
  return {
    ...sent,
    required: false,
    read: (text, services) => (text === '' ? { value: empty } : sent.read(text, services)),
  };
};
