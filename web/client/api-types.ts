// Made from the OpenAPI document of buyers: npm run generate

export interface paths {
    "/v1/sales/{saleId}/purchases": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Buy. Make the key once per purchase and keep it: every retry with it is safe. */
        post: operations["buy"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sales/{saleId}/purchases/{requestId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Where a purchase stands; waits up to `wait` seconds while it is pending. */
        get: operations["readPurchase"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sales/{saleId}/purchases/{requestId}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The purchase as a stream of events, from where it stands to its end. Come again with Last-Event-ID. */
        get: operations["followPurchase"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sales/{saleId}/purchase-token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** The one purchase token of a buyer, null where none is needed. Safe to repeat: until it ends it stays the same. */
        post: operations["fetchPurchaseToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sales/{saleId}/queue": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Join the waiting room of a sale. Safe to repeat: a waiting buyer keeps their place. */
        post: operations["joinQueue"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sales/{saleId}/queue/{ticket}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How a place stands. Each answer brings a new ticket; the old one ends. */
        get: operations["readTicket"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sales/{saleId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The sale, as everybody may see it. */
        get: operations["readSalePage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/me/orders": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The orders of the buyer, newest sale first; `next` goes into `after` for the next page. */
        get: operations["listMyOrders"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/orders/{orderId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** An order of the buyer, with what is or was owed back. */
        get: operations["readOrder"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/orders/{orderId}/pay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Pay an order. One Idempotency-Key is one charge; without it all tries are one. Safe to repeat. One key at a time is charged. */
        post: operations["payOrder"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/orders/{orderId}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Give up an order that is not paid. Safe to repeat. */
        post: operations["cancelOrder"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Purchase: {
            requestId: string;
            saleId?: string;
            /** @enum {string} */
            status: "pending" | "ordered" | "failed";
            orderId?: string;
            /** @enum {string} */
            orderState?: "pending_payment" | "paid" | "cancelled" | "expired" | "failed";
            reason?: string;
        };
        /** @description RFC 9457; `code` is the word that a program reads. */
        Problem: {
            type: string;
            title: string;
            status: number;
            detail: string;
            /** @enum {string} */
            code: "request_conflict" | "not_found" | "closed" | "sold_out" | "not_enough_left" | "limit_reached" | "refused_by_store" | "not_open" | "paused" | "loading" | "rate_limited" | "overloaded" | "unavailable" | "outcome_unknown" | "bad_request" | "unauthorized" | "role_needed" | "denied" | "queue_pass_needed" | "purchase_token_needed" | "route_not_found" | "order_not_found" | "purchase_not_found" | "dead_letter_not_found" | "job_not_found" | "refund_not_found" | "method_not_allowed" | "misdirected" | "request_timeout" | "wrong_state" | "sale_overlaps" | "units_not_free" | "not_warmed" | "not_replayable" | "reconcile_running" | "profile_running" | "version_conflict" | "rules_not_found" | "payload_too_large" | "unsupported_media_type" | "headers_too_large" | "internal" | "repairing" | "payment_declined" | "decline_limit_reached" | "case_not_found" | "refund_due" | "payment_conflict" | "payment_in_progress" | "payment_method_needed" | "wrong_payment_mode" | "payment_not_configured" | "broker_not_configured" | "bad_signature" | "ticket_not_found" | "degraded" | "rules_unfit" | "tokens_gone" | "cancel_limit_reached" | "unpaid_pause" | "token_limit_reached";
            requestId: string | null;
            retryable: boolean;
            /** @description present exactly when `retryable` */
            retryAfterMs?: number;
            /** @description one sentence per wrong field */
            errors?: {
                field: string;
                message: string;
            }[];
        };
        Degraded: {
            /**
             * @description an old answer, its essential fields, or an empty one
             * @enum {string}
             */
            degraded: "L1" | "L2" | "L3";
            /** @description how old it is, in ms; absent: just read, or nothing is known */
            ageMs?: number;
        } & {
            [key: string]: unknown;
        };
        SalePage: {
            saleId: string;
            sku: string;
            title: string;
            /** @description in the smallest unit of its currency: 1999 is 19.99 EUR or 1,999 JPY */
            priceCents: number;
            /** @description of the price and of all orders: three letters of ISO 4217 */
            currency: string;
            limitPerBuyer: number;
            /** Format: date-time */
            opensAt: string;
            /** Format: date-time */
            closesAt: string;
            /** @enum {string} */
            state: "not_open" | "open" | "paused" | "closed" | "loading";
            /** @enum {string} */
            stock: "plenty" | "few" | "none" | "unknown";
            /** @description what a purchase must show: a signature, a purchase token, a pass of the waiting room */
            asksFor: ("signature" | "purchase_token" | "queue_pass")[];
            /**
             * Format: date-time
             * @description when this was answered; caches may have kept it since
             */
            serverTime: string;
        };
        Order: {
            orderId: string;
            saleId: string;
            requestId: string;
            quantity: number;
            /** @description in the smallest unit of its currency: 1999 is 19.99 EUR or 1,999 JPY */
            amountCents: number;
            /** @description of the amount: three letters of ISO 4217 */
            currency: string;
            /** @enum {string} */
            state: "pending_payment" | "paid" | "cancelled" | "expired" | "failed";
            reason: ("oversold_guard" | "limit_reached" | "discarded" | "units_lost" | "compensation_failed" | "refused_by_database") | null;
            /** Format: date-time */
            createdAt: string;
            expiresAt: string | null;
            paidAt: string | null;
            /** @description as the purchase gave it */
            metadata: {
                [key: string]: string;
            } | null;
        };
        OrderWithRefunds: {
            orderId: string;
            saleId: string;
            requestId: string;
            quantity: number;
            /** @description in the smallest unit of its currency: 1999 is 19.99 EUR or 1,999 JPY */
            amountCents: number;
            /** @description of the amount: three letters of ISO 4217 */
            currency: string;
            /** @enum {string} */
            state: "pending_payment" | "paid" | "cancelled" | "expired" | "failed";
            reason: ("oversold_guard" | "limit_reached" | "discarded" | "units_lost" | "compensation_failed" | "refused_by_database") | null;
            /** Format: date-time */
            createdAt: string;
            expiresAt: string | null;
            paidAt: string | null;
            /** @description as the purchase gave it */
            metadata: {
                [key: string]: string;
            } | null;
            refunds?: {
                /** @description in the smallest unit of its currency: 1999 is 19.99 EUR or 1,999 JPY */
                amountCents: number;
                /** @enum {string} */
                state: "due" | "refunded";
                reason: string;
            }[];
        };
        PaymentEvent: {
            /** @description `payment.succeeded`, `payment.refunded`, `payment.disputed` or `refund.failed`; or an event of Stripe, whose fields are its own */
            type: string;
            paymentId?: string;
            orderId?: string;
            /** @description in the smallest unit of its currency: 1999 is 19.99 EUR or 1,999 JPY */
            amountCents?: number;
            currency?: string;
            /** @description real money; false for a trial mode of the provider */
            live?: boolean;
        };
        IsReady: {
            ready: boolean;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    buy: {
        parameters: {
            query?: never;
            header: {
                /** @description the name of this purchase, made by the caller before the first try */
                "Idempotency-Key": string;
                /** @description W3C trace context; its trace id comes back in `Trace-Id`, and finds the purchase */
                traceparent?: string;
                /** @description which key signed; where the sale asks for signed requests; `^[A-Za-z0-9_-]{1,64}$` */
                "Seckill-Key-Id"?: string;
                /** @description Unix time in seconds; where the sale asks for signed requests; `^[0-9]{1,12}$` */
                "Seckill-Timestamp"?: string;
                /** @description new for every try; where the sale asks for signed requests; `^[A-Za-z0-9_-]{16,64}$` */
                "Seckill-Nonce"?: string;
                /** @description 1 where left out; where the sale asks for signed requests; `^[12]$` */
                "Seckill-Signature-Version"?: string;
                /** @description HMAC-SHA-256 of the request; where the sale asks for signed requests; `^[A-Za-z0-9_-]{43}$` */
                "Seckill-Signature"?: string;
                /** @description where the sale asks for purchase tokens; `^[!-~]+$` */
                "Seckill-Purchase-Token"?: string;
                /** @description where the sale has a waiting room; `^[!-~]+$` */
                "Seckill-Queue-Pass"?: string;
            };
            path: {
                saleId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @default 1 */
                    quantity?: number;
                    /** @description goes along to the order and its events; at most 512 bytes as JSON */
                    metadata?: {
                        [key: string]: string;
                    };
                };
            };
        };
        responses: {
            /** @description asked before: the order is there, or how it ended */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Purchase"];
                };
            };
            /** @description the units are held for this buyer; see Location */
            202: {
                headers: {
                    /** @description where to ask what became of the purchase */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Purchase"];
                };
            };
            /** @description `bad_request`: The request is not well-formed. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `bad_signature`: A valid signature of the request is needed.
             *
             *     `unauthorized`: A valid token is needed: Authorization: Bearer <token>.
             */
            401: {
                headers: {
                    /** @description the challenge of RFC 6750 */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `denied`: Access is denied.
             *
             *     `queue_pass_needed`: A pass of the waiting room is needed.
             *
             *     `purchase_token_needed`: A purchase token is needed, one for each purchase.
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: There is no such sale. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `not_open`: The sale has not opened yet.
             *
             *     `closed`: The sale is over.
             *
             *     `sold_out`: There are no units left for this purchase.
             *
             *     `not_enough_left`: Fewer units are left than you want. A purchase of fewer units may succeed.
             *
             *     `limit_reached`: With this purchase you would have more units than one buyer may have.
             */
            409: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: The body is larger than this address accepts. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: The body must be plain application/json in UTF-8. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `request_conflict`: This key was used for a different request.
             *
             *     `refused_by_store`: This purchase cannot be stored as it was sent; nothing was taken. Leave its metadata out, and use a new key.
             */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `rate_limited`: You ask too often, or too many ask at once.
             *
             *     `unpaid_pause`: You left an order of this sale unpaid until it expired. Each such order doubles the pause before the next purchase.
             */
            429: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `degraded`: Too many requests at the moment; nothing was started. Try again later with the same key.
             *
             *     `loading`: The sale is being loaded.
             *
             *     `paused`: The sale is paused.
             *
             *     `overloaded`: Too many requests are waiting.
             *
             *     `unavailable`: A part of the system does not answer; this try took nothing. Ask again with the same key.
             *
             *     `outcome_unknown`: The answer was lost. Ask again with the same key.
             */
            503: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    readPurchase: {
        parameters: {
            query?: {
                wait?: number;
            };
            header?: {
                /** @description which key signed; where the sale asks for signed requests; `^[A-Za-z0-9_-]{1,64}$` */
                "Seckill-Key-Id"?: string;
                /** @description Unix time in seconds; where the sale asks for signed requests; `^[0-9]{1,12}$` */
                "Seckill-Timestamp"?: string;
                /** @description new for every try; where the sale asks for signed requests; `^[A-Za-z0-9_-]{16,64}$` */
                "Seckill-Nonce"?: string;
                /** @description 1 where left out; where the sale asks for signed requests; `^[12]$` */
                "Seckill-Signature-Version"?: string;
                /** @description HMAC-SHA-256 of the request; where the sale asks for signed requests; `^[A-Za-z0-9_-]{43}$` */
                "Seckill-Signature"?: string;
            };
            path: {
                saleId: string;
                requestId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the purchase; less of it, marked by `degraded`, while there is too much to do */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Degraded"] | components["schemas"]["Purchase"];
                };
            };
            /** @description `bad_request`: The request is not well-formed. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `bad_signature`: A valid signature of the request is needed.
             *
             *     `unauthorized`: A valid token is needed: Authorization: Bearer <token>.
             */
            401: {
                headers: {
                    /** @description the challenge of RFC 6750 */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `denied`: Access is denied. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `purchase_not_found`: You have no purchase with this key in this sale. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: The body is larger than this address accepts. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate_limited`: You ask too often, or too many ask at once. */
            429: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `degraded`: Too many requests at the moment; nothing was started. Try again later with the same key.
             *
             *     `unavailable`: A part of the system does not answer; this try took nothing. Ask again with the same key.
             */
            503: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    followPurchase: {
        parameters: {
            query?: never;
            header?: {
                /** @description the last event that the client has seen */
                "Last-Event-ID"?: "pending" | "ordered" | "paid" | "cancelled" | "expired" | "failed";
                /** @description which key signed; where the sale asks for signed requests; `^[A-Za-z0-9_-]{1,64}$` */
                "Seckill-Key-Id"?: string;
                /** @description Unix time in seconds; where the sale asks for signed requests; `^[0-9]{1,12}$` */
                "Seckill-Timestamp"?: string;
                /** @description new for every try; where the sale asks for signed requests; `^[A-Za-z0-9_-]{16,64}$` */
                "Seckill-Nonce"?: string;
                /** @description 1 where left out; where the sale asks for signed requests; `^[12]$` */
                "Seckill-Signature-Version"?: string;
                /** @description HMAC-SHA-256 of the request; where the sale asks for signed requests; `^[A-Za-z0-9_-]{43}$` */
                "Seckill-Signature"?: string;
            };
            path: {
                saleId: string;
                requestId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description id and event: `pending`, `ordered`, then `paid`, `cancelled` or `expired`, or `failed`; data: the purchase as JSON. The stream ends behind the last one, or after a time, with `retry`. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description Last-Event-ID was the end: nothing more will come */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: The request is not well-formed. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `bad_signature`: A valid signature of the request is needed.
             *
             *     `unauthorized`: A valid token is needed: Authorization: Bearer <token>.
             */
            401: {
                headers: {
                    /** @description the challenge of RFC 6750 */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `denied`: Access is denied. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `purchase_not_found`: You have no purchase with this key in this sale. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: The body is larger than this address accepts. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate_limited`: You ask too often, or too many ask at once. */
            429: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `degraded`: Too many requests at the moment; nothing was started. Try again later with the same key.
             *
             *     `overloaded`: Too many requests are waiting.
             *
             *     `unavailable`: A part of the system does not answer; this try took nothing. Ask again with the same key.
             */
            503: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    fetchPurchaseToken: {
        parameters: {
            query?: never;
            header?: {
                /** @description which key signed; where the sale asks for signed requests; `^[A-Za-z0-9_-]{1,64}$` */
                "Seckill-Key-Id"?: string;
                /** @description Unix time in seconds; where the sale asks for signed requests; `^[0-9]{1,12}$` */
                "Seckill-Timestamp"?: string;
                /** @description new for every try; where the sale asks for signed requests; `^[A-Za-z0-9_-]{16,64}$` */
                "Seckill-Nonce"?: string;
                /** @description 1 where left out; where the sale asks for signed requests; `^[12]$` */
                "Seckill-Signature-Version"?: string;
                /** @description HMAC-SHA-256 of the request; where the sale asks for signed requests; `^[A-Za-z0-9_-]{43}$` */
                "Seckill-Signature"?: string;
            };
            path: {
                saleId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the token */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        token: string | null;
                        endsAt: string | null;
                    };
                };
            };
            /** @description `bad_request`: The request is not well-formed. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `bad_signature`: A valid signature of the request is needed.
             *
             *     `unauthorized`: A valid token is needed: Authorization: Bearer <token>.
             */
            401: {
                headers: {
                    /** @description the challenge of RFC 6750 */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `denied`: Access is denied. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: There is no such sale. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `closed`: The sale is over.
             *
             *     `not_open`: The sale has not opened yet.
             *
             *     `tokens_gone`: As many buyers have a token for this sale as may have one at a time. Ask again when the first one ends.
             *
             *     `token_limit_reached`: You have let as many tokens for this sale end as one buyer may have.
             */
            409: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: The body is larger than this address accepts. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate_limited`: You ask too often, or too many ask at once. */
            429: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `degraded`: Too many requests at the moment; nothing was started. Try again later with the same key.
             *
             *     `loading`: The sale is being loaded.
             *
             *     `unavailable`: A part of the system does not answer; this try took nothing. Ask again with the same key.
             */
            503: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    joinQueue: {
        parameters: {
            query?: never;
            header?: {
                /** @description which key signed; where the sale asks for signed requests; `^[A-Za-z0-9_-]{1,64}$` */
                "Seckill-Key-Id"?: string;
                /** @description Unix time in seconds; where the sale asks for signed requests; `^[0-9]{1,12}$` */
                "Seckill-Timestamp"?: string;
                /** @description new for every try; where the sale asks for signed requests; `^[A-Za-z0-9_-]{16,64}$` */
                "Seckill-Nonce"?: string;
                /** @description 1 where left out; where the sale asks for signed requests; `^[12]$` */
                "Seckill-Signature-Version"?: string;
                /** @description HMAC-SHA-256 of the request; where the sale asks for signed requests; `^[A-Za-z0-9_-]{43}$` */
                "Seckill-Signature"?: string;
            };
            path: {
                saleId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description let in, or there is no queue */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @constant */
                        status: "waiting";
                        ticket: string;
                        /** @enum {string} */
                        priority: "P0" | "P1" | "P2";
                        position: number | null;
                        estimateMs: number | null;
                        pollAfterMs: number;
                    } | {
                        /** @constant */
                        status: "admitted";
                        pass: string;
                        /** Format: date-time */
                        passEndsAt: string;
                    } | {
                        /** @constant */
                        status: "no_queue";
                    };
                };
            };
            /** @description a place; see Location */
            202: {
                headers: {
                    /** @description where to ask for the place */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @constant */
                        status: "waiting";
                        ticket: string;
                        /** @enum {string} */
                        priority: "P0" | "P1" | "P2";
                        position: number | null;
                        estimateMs: number | null;
                        pollAfterMs: number;
                    } | {
                        /** @constant */
                        status: "admitted";
                        pass: string;
                        /** Format: date-time */
                        passEndsAt: string;
                    } | {
                        /** @constant */
                        status: "no_queue";
                    };
                };
            };
            /** @description `bad_request`: The request is not well-formed. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `bad_signature`: A valid signature of the request is needed.
             *
             *     `unauthorized`: A valid token is needed: Authorization: Bearer <token>.
             */
            401: {
                headers: {
                    /** @description the challenge of RFC 6750 */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `denied`: Access is denied. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: There is no such sale. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `closed`: The sale is over.
             *
             *     `sold_out`: There are no units left for this purchase.
             */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: The body is larger than this address accepts. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate_limited`: You ask too often, or too many ask at once. */
            429: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `degraded`: Too many requests at the moment; nothing was started. Try again later with the same key.
             *
             *     `loading`: The sale is being loaded.
             *
             *     `overloaded`: Too many requests are waiting.
             *
             *     `unavailable`: A part of the system does not answer; this try took nothing. Ask again with the same key.
             */
            503: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    readTicket: {
        parameters: {
            query?: never;
            header?: {
                /** @description which key signed; where the sale asks for signed requests; `^[A-Za-z0-9_-]{1,64}$` */
                "Seckill-Key-Id"?: string;
                /** @description Unix time in seconds; where the sale asks for signed requests; `^[0-9]{1,12}$` */
                "Seckill-Timestamp"?: string;
                /** @description new for every try; where the sale asks for signed requests; `^[A-Za-z0-9_-]{16,64}$` */
                "Seckill-Nonce"?: string;
                /** @description 1 where left out; where the sale asks for signed requests; `^[12]$` */
                "Seckill-Signature-Version"?: string;
                /** @description HMAC-SHA-256 of the request; where the sale asks for signed requests; `^[A-Za-z0-9_-]{43}$` */
                "Seckill-Signature"?: string;
            };
            path: {
                saleId: string;
                ticket: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the place */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @constant */
                        status: "waiting";
                        ticket: string;
                        /** @enum {string} */
                        priority: "P0" | "P1" | "P2";
                        position: number | null;
                        estimateMs: number | null;
                        pollAfterMs: number;
                    } | {
                        /** @constant */
                        status: "admitted";
                        pass: string;
                        /** Format: date-time */
                        passEndsAt: string;
                    } | {
                        /** @constant */
                        status: "no_queue";
                    };
                };
            };
            /** @description `bad_request`: The request is not well-formed. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `bad_signature`: A valid signature of the request is needed.
             *
             *     `unauthorized`: A valid token is needed: Authorization: Bearer <token>.
             */
            401: {
                headers: {
                    /** @description the challenge of RFC 6750 */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `denied`: Access is denied. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `not_found`: There is no such sale.
             *
             *     `ticket_not_found`: You have no such ticket for this queue, or it has ended. Join again.
             */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `closed`: The sale is over.
             *
             *     `sold_out`: There are no units left for this purchase.
             */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: The body is larger than this address accepts. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate_limited`: You ask too often, or too many ask at once. */
            429: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `degraded`: Too many requests at the moment; nothing was started. Try again later with the same key.
             *
             *     `loading`: The sale is being loaded.
             *
             *     `overloaded`: Too many requests are waiting.
             *
             *     `unavailable`: A part of the system does not answer; this try took nothing. Ask again with the same key.
             */
            503: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    readSalePage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                saleId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the sale; less of it, marked by `degraded`, while there is too much to do */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Degraded"] | components["schemas"]["SalePage"];
                };
            };
            /** @description no page right now: there is too much to do */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `bad_request`: The request is not well-formed. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `denied`: Access is denied. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found`: There is no such sale. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate_limited`: You ask too often, or too many ask at once. */
            429: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `degraded`: Too many requests at the moment; nothing was started. Try again later with the same key.
             *
             *     `loading`: The sale is being loaded.
             *
             *     `unavailable`: A part of the system does not answer; this try took nothing. Ask again with the same key.
             */
            503: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listMyOrders: {
        parameters: {
            query?: {
                after?: string;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description a page */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        orders: components["schemas"]["Order"][];
                        next: string | null;
                    };
                };
            };
            /** @description `bad_request`: The request is not well-formed. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: A valid token is needed: Authorization: Bearer <token>. */
            401: {
                headers: {
                    /** @description the challenge of RFC 6750 */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `denied`: Access is denied. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate_limited`: You ask too often, or too many ask at once. */
            429: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `degraded`: Too many requests at the moment; nothing was started. Try again later with the same key.
             *
             *     `unavailable`: A part of the system does not answer; this try took nothing. Ask again with the same key.
             */
            503: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    readOrder: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                orderId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the order; less of it, marked by `degraded`, while there is too much to do */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Degraded"] | components["schemas"]["OrderWithRefunds"];
                };
            };
            /** @description `bad_request`: The request is not well-formed. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: A valid token is needed: Authorization: Bearer <token>. */
            401: {
                headers: {
                    /** @description the challenge of RFC 6750 */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `denied`: Access is denied. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `order_not_found`: You have no such order. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate_limited`: You ask too often, or too many ask at once. */
            429: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `degraded`: Too many requests at the moment; nothing was started. Try again later with the same key.
             *
             *     `unavailable`: A part of the system does not answer; this try took nothing. Ask again with the same key.
             */
            503: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    payOrder: {
        parameters: {
            query?: never;
            header?: {
                /** @description the name of this charge */
                "Idempotency-Key"?: string;
            };
            path: {
                orderId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description what the library of the payment provider calls the card of the buyer (Stripe: `pm_…`); never the card itself */
                    paymentMethod?: string;
                };
            };
        };
        responses: {
            /** @description the order, paid now or before */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Order"];
                };
            };
            /** @description the bank of the buyer asks them first: give `clientSecret` to the library of the payment provider, then ask again with the same key */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @constant */
                        outcome: "action_needed";
                        orderId: string;
                        clientSecret: string;
                    };
                };
            };
            /** @description `bad_request`: The request is not well-formed. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: A valid token is needed: Authorization: Bearer <token>. */
            401: {
                headers: {
                    /** @description the challenge of RFC 6750 */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payment_declined`: The payment was declined. Try again with another Idempotency-Key. */
            402: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `denied`: Access is denied. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `order_not_found`: You have no such order. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `wrong_state`: This cannot be done from the state it is in.
             *
             *     `refund_due`: The order had ended before the money came. It goes back.
             *
             *     `decline_limit_reached`: Too many payments of this order, or of yours within an hour, were declined. Nothing was charged for this one.
             *
             *     `payment_in_progress`: A payment of this order with another Idempotency-Key is not resolved yet. Nothing was charged for this one.
             */
            409: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payload_too_large`: The body is larger than this address accepts. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type`: The body must be plain application/json in UTF-8. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payment_method_needed`: Send {"paymentMethod": "…"}: what the library of the payment provider calls the card of the buyer. Nothing was charged. */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate_limited`: You ask too often, or too many ask at once. */
            429: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `payment_not_configured`: This server is not set up for it. */
            501: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `degraded`: Too many requests at the moment; nothing was started. Try again later with the same key.
             *
             *     `outcome_unknown`: The answer was lost. Ask again with the same key.
             *
             *     `unavailable`: A part of the system does not answer; this try took nothing. Ask again with the same key.
             */
            503: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    cancelOrder: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                orderId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the order, cancelled now or before */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Order"];
                };
            };
            /** @description `bad_request`: The request is not well-formed. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`: A valid token is needed: Authorization: Bearer <token>. */
            401: {
                headers: {
                    /** @description the challenge of RFC 6750 */
                    "WWW-Authenticate"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `denied`: Access is denied. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `order_not_found`: You have no such order. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `wrong_state`: This cannot be done from the state it is in.
             *
             *     `cancel_limit_reached`: You have cancelled as many orders of this sale as one buyer may. This one ends by itself unless it is paid.
             */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate_limited`: You ask too often, or too many ask at once. */
            429: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `internal`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description `degraded`: Too many requests at the moment; nothing was started. Try again later with the same key.
             *
             *     `unavailable`: A part of the system does not answer; this try took nothing. Ask again with the same key.
             */
            503: {
                headers: {
                    /** @description whole seconds to wait before the same request may do better; there where `retryable` is true */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
}
