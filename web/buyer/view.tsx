import { Component, type ComponentChildren, type JSX } from 'preact';
import { maskedName } from '../shared/sign-in.js';
import { Picture } from './picture.js';
import type { Format } from './format.js';
import { isBought, type OrderView } from './order.js';
import type { Page } from './page.js';
import type { Shown } from './says.js';
import { chipOf, clockParts, type Screen, type ShownPlace } from './screen.js';
import { mayBuyAnother, type PageState } from './state.js';
import { LANGUAGES } from './words/languages.js';
import type { Words } from './words/words.js';

/** The choices of a person on the page. They are kept apart from what the page knows of the sale. */
export interface Choices {
  /** The page is asking whether to cancel the order. */
  readonly isCancelling: boolean;
}

export interface ViewProps {
  readonly page: Pick<
    Page,
    'buy' | 'newsSeen' | 'setQuantity' | 'giveUp' | 'move' | 'chooseCoupon' | 'again' | 'lookAgain' | 'decideOffer'
  >;
  readonly state: PageState;
  readonly shown: Shown;
  readonly nowMs: number;
  readonly words: Words;
  readonly format: Format;
  readonly choices: Choices;
  readonly choose: (choices: Partial<Choices>) => void;
  readonly setLanguage: (lang: string) => void;
  /** Name of the shop, or the host of the page. */
  readonly shop: string;
  /** Picture of the product. Null if there is no picture, or it cannot be loaded. */
  readonly pictureUrl: string | null;
  /** Address where buyers sign in. Null if unknown. */
  readonly signInUrl: string | null;
  /** The countdown ended on this page. It stays, at zero, so that the button does not move under a finger. */
  readonly hasCountedDown: boolean;
}

export function View(props: ViewProps): JSX.Element {
  const { state, shown, words, shop, pictureUrl, setLanguage } = props;
  const { sale, signIn, signInEnded } = state;
  const { screen } = shown;
  return (
    <div class="page" data-screen={screen.name}>
      <header>
        <p class="shop">{shop}</p>
        {signIn === null || signInEnded ? null : (
          <p class="who" data-icon="person">
            <span class="sr">{words.signedInAs} </span>
            {maskedName(signIn.userId)}
          </p>
        )}
        <div class="languages" role="group" aria-label={words.otherLanguage}>
          {LANGUAGES.map(({ lang, name }) => (
            <button
              key={lang}
              type="button"
              lang={lang}
              aria-pressed={lang === words.lang}
              onClick={() => setLanguage(lang)}
            >
              {name}
            </button>
          ))}
        </div>
      </header>
      {state.isOnline || shown.name === 'offline' ? null : (
        <p class="offline" role="status">
          {words.offline}
        </p>
      )}
      {screen.name === 'missing' || screen.name === 'unreachable' ? (
        <Alone {...props} />
      ) : (
        <main>
          <div class="stage">{sale === null ? null : <Picture sku={sale.sku} url={pictureUrl} />}</div>
          <div class="details">
            {sale === null ? <Blank /> : <Item {...props} sale={sale} />}
            <Panel {...props} />
            <News {...props} />
            {sale === null ? null : <Facts {...props} sale={sale} />}
          </div>
        </main>
      )}
    </div>
  );
}

/** Shown if there is no sale to show. */
function Alone({ shown, words, page }: ViewProps): JSX.Element {
  const { title, text } = words.screens[shown.name];
  return (
    <main class="alone">
      <Heading title={title} level={1} />
      <Note text={shown.note} />
      {shown.name === 'missing' ? null : (
        <Go key="look" id="look" label={words.buttons.retry} onPress={() => page.lookAgain()} />
      )}
      <p class="text" id="hint">
        {text}
      </p>
    </main>
  );
}

/** Length in letters. Longer titles are written smaller. */
const LONG_TITLE = 60;

type WithSale = ViewProps & { readonly sale: NonNullable<PageState['sale']> };

function Item({ sale, state, shown, nowMs, words, format }: WithSale): JSX.Element {
  const chip = chipOf(state, nowMs);
  const isForThem = ['ready', 'turn', 'signed_out', 'sign_in_ended'].includes(shown.name);
  return (
    <>
      <p class="chip" data-chip={chip} data-bright={isForThem}>
        {words.chips[chip]}
      </p>
      <h1 data-long={sale.title.length > LONG_TITLE}>{sale.title}</h1>
      <p class="price">
        {sale.limitPerBuyer > 1 ? words.each(format.price(sale.priceCents)) : format.price(sale.priceCents)}
      </p>
    </>
  );
}

/** Placeholder, as high as the content that replaces it. */
const Blank = (): JSX.Element => (
  <div class="blank-item" aria-hidden="true">
    <p class="chip blank" />
    <p class="h1 blank" />
    <p class="price blank" />
  </div>
);

/** Shows the changes of the buyer's orders since their last visit. */
function News({ state, words, format, page }: ViewProps): JSX.Element | null {
  if (state.news.length === 0) return null;
  return (
    <section class="news" aria-labelledby="news">
      <h2 id="news">{words.news.title}</h2>
      <ul>
        {state.news.map(({ id, type, orderId, atMs }) => (
          <li key={id}>
            {words.news.types[type]} <span class="when">{format.when(atMs)}</span>
            <span class="id">
              {words.orderNumber} {orderId}
            </span>
          </li>
        ))}
      </ul>
      <Quiet id="news-seen" label={words.news.seen} onPress={() => page.newsSeen()} />
    </section>
  );
}

function Facts({ sale, words, format }: WithSale): JSX.Element {
  return (
    <ul class="facts" aria-label={words.factsTitle}>
      <li data-icon="person">{words.limit(sale.limitPerBuyer)}</li>
      <li data-icon="clock">{words.until(format.when(sale.closesAtMs))}</li>
      {sale.paymentWindow && <li data-icon="clock">{words.payWithin(format.span(sale.paymentWindow))}</li>}
      <li data-icon="lock">{words.once}</li>
    </ul>
  );
}

/**
 * The central panel: a headline, its content, a button, a sentence. Its shape never changes, so that the button stays
 * the same element, and keeps the focus, from the countdown to the order.
 */
interface Parts {
  readonly title: string;
  readonly tone?: 'calm' | 'good';
  readonly above?: ComponentChildren;
  /** Null: there is nothing to press. */
  readonly go: GoProps | null;
  readonly hint: string;
  readonly below?: ComponentChildren;
}

function Panel(props: ViewProps): JSX.Element {
  const { title, tone = 'calm', above, go, hint, below } = partsOf(props);
  return (
    <section class="panel" aria-labelledby="headline">
      <Heading title={title} tone={tone} />
      <div class="above">{above}</div>
      {go === null ? null : <Go key={go.id ?? 'go'} {...go} />}
      <p class="text hint" id="hint" hidden={hint === ''}>
        {hint}
      </p>
      {below}
    </section>
  );
}

function partsOf(props: ViewProps): Parts {
  const { shown, words, format, state, page } = props;
  const { screen, note } = shown;
  const { buttons } = words;
  const { title, text } = words.screens[shown.name];
  const simple = (button: string | null, more: Partial<GoProps> = {}): Parts => ({
    title,
    hint: text,
    above: <Note text={note} />,
    go: button === null ? null : { label: button, ...more },
  });
  /** Like `simple`, but also shows the countdown and the quantity, so that nothing moves when the sale resumes. */
  const soon = (...args: Parameters<typeof simple>): Parts => {
    const parts = simple(...args);
    const above = (
      <>
        <Countdown {...props} />
        {parts.above}
        <Quantity {...props} />
      </>
    );
    return { ...parts, above };
  };
  switch (screen.name) {
    case 'loading':
      return { title, go: null, hint: '' }; // here nothing could move
    case 'order_loading':
    case 'checking':
      return simple(buttons.busy, { isBusy: true });
    case 'missing':
    case 'unreachable':
    case 'app_only':
      return simple(null);
    case 'countdown':
      return countdown(props, screen);
    case 'ready': {
      const above = (
        <>
          <Countdown {...props} />
          {screen.passMs === null ? null : (
            <TimeLeft isTurn label={words.turnEnds} time={format.clock(screen.passMs)} />
          )}
          <Note text={note} />
          <Quantity {...props} />
        </>
      );
      return {
        title,
        hint: text,
        above,
        go: {
          label: buttons.buy(format.price(priceOf(state))),
          ...(screen.isOffline ? {} : { onPress: () => page.buy() }),
        },
      };
    }
    case 'room': {
      const above = (
        <>
          <Place place={screen.place} words={words} format={format} />
          <Note text={note} />
          <Quantity {...props} />
        </>
      );
      return { ...simple(buttons.room), above };
    }
    case 'preparing':
      return simple(buttons.preparing, { isBusy: note === null });
    case 'opening':
      return soon(buttons.opening, { isBusy: true });
    case 'sold_out':
      return soon(buttons.soldOut);
    case 'paused':
      return soon(buttons.paused);
    case 'busy':
      return soon(buttons.busy, { isBusy: true });
    case 'closed':
      return simple(buttons.closed);
    case 'signed_out':
      return { ...simple(null), ...signInParts(props) };
    case 'other_buyer': {
      const [known, offered] = [state.signIn?.userId ?? '', state.offeredSignIn?.userId ?? ''].map(maskedName);
      return {
        ...simple(buttons.stayAs(known as string), { id: 'stay', onPress: () => page.decideOffer(false) }),
        below: (
          <Quiet
            key="change"
            id="change"
            label={buttons.goOnAs(offered as string)}
            onPress={() => page.decideOffer(true)}
          />
        ),
      };
    }
    case 'refused':
      return simple(buttons.retry, { onPress: () => page.buy() });
    case 'pause':
      return simple(buttons.pause(format.clock(screen.leftMs)));
    case 'asking': {
      const parts = soon(buttons.sending, { isBusy: true });
      if (screen.code === null) return parts;
      return { ...parts, below: <Quiet key="stop" id="stop" label={buttons.stop} onPress={() => page.giveUp()} /> };
    }
    case 'held':
      return { ...simple(buttons.held, { isBusy: true }), tone: 'good' };
    case 'to_pay':
      return toPay(props, screen);
    case 'paid':
    case 'refunding':
    case 'refunded':
    case 'cancelled':
    case 'expired': {
      const { order } = screen;
      const above = (
        <>
          <p class="text">{text}</p>
          <Receipt {...props} order={order} />
          <Note text={note} />
        </>
      );
      return {
        title,
        tone: screen.name === 'paid' ? 'good' : 'calm',
        above,
        hint: '',
        ...again(props),
      };
    }
    case 'failed':
      return {
        title,
        above: <Note text={note} />,
        hint: '',
        ...again(props),
      };
  }
}

/** Offers another purchase, as the main button if the buyer has no units. */
function again({ state, words, page }: ViewProps): Pick<Parts, 'go' | 'below'> {
  const { sale, order } = state;
  if (sale === null || sale.state === 'closed' || !mayBuyAnother(state)) return { go: null };
  const parts = { id: 'again', label: words.buttons.again, onPress: (): void => page.again() };
  return order !== null && isBought(order.state)
    ? { go: null, below: <Quiet key="again" {...parts} /> }
    : { go: parts };
}

const priceOf = ({ sale, purchase }: PageState): number => (sale?.priceCents ?? 0) * purchase.quantity;

/** Takes the focus if the focused element is gone. */
function Heading({
  title,
  tone = 'calm',
  level = 2,
}: {
  readonly title: string;
  readonly tone?: 'calm' | 'good';
  readonly level?: 1 | 2;
}): JSX.Element {
  const Tag = level === 1 ? 'h1' : 'h2';
  return (
    <Tag id="headline" class="headline" data-tone={tone} tabIndex={-1}>
      {title}
    </Tag>
  );
}

const Note = ({
  text,
  tone = 'warn',
}: {
  readonly text: string | null;
  readonly tone?: 'warn' | 'info';
}): JSX.Element | null =>
  text === null ? null : (
    <p class="note" data-tone={tone}>
      {text}
    </p>
  );

interface PressProps {
  /** Absent: the button cannot be pressed. */
  readonly onPress?: () => void;
  /** A press cannot be undone. */
  readonly isFinal?: boolean;
}

/** Length of a double click on most systems. */
const DOUBLE_CLICK_MS = 500;

/**
 * The browser counts clicks that follow each other quickly. If the first click fell on the previous element in this
 * place, the clicks after it were meant for that element. They do nothing for the length of a double click, and nothing
 * at all if they could not be undone.
 */
abstract class Pressed<P extends PressProps> extends Component<P> {
  readonly #sinceMs = performance.now();
  #isPressedFirst = false;

  protected readonly press = ({ detail }: MouseEvent): void => {
    const { onPress, isFinal = false } = this.props;
    if (detail <= 1) this.#isPressedFirst = true;
    const isOld = !isFinal && performance.now() - this.#sinceMs > DOUBLE_CLICK_MS;
    if (this.#isPressedFirst || isOld) onPress?.();
  };
}

interface GoProps extends PressProps {
  readonly id?: string;
  readonly label: string;
  /** Address to open instead. */
  readonly href?: string;
  readonly isBusy?: boolean;
  /** The page is asking something else at the moment. */
  readonly isQuiet?: boolean;
}

/** The button. A disabled button keeps its focus: it has `aria-disabled`, and does nothing. */
class Go extends Pressed<GoProps> {
  override render({ id = 'go', label, onPress, href, isBusy = false, isQuiet = false }: GoProps): JSX.Element {
    if (href !== undefined) {
      return (
        <a class="go" id={id} href={href} target="_top" aria-describedby="hint">
          <span>{label}</span>
        </a>
      );
    }
    return (
      <button
        type="button"
        class="go"
        id={id}
        aria-disabled={onPress === undefined}
        aria-describedby="hint"
        data-busy={isBusy}
        data-quiet={isQuiet}
        onClick={this.press}
      >
        <span>{label}</span>
      </button>
    );
  }
}

interface QuietProps extends PressProps {
  readonly id: string;
  readonly label: string;
}

class Quiet extends Pressed<QuietProps> {
  override render({ id, label, onPress }: QuietProps): JSX.Element {
    return (
      <button type="button" class="quiet" id={id} aria-disabled={onPress === undefined} onClick={this.press}>
        {label}
      </button>
    );
  }
}

type Named<N extends Screen['name']> = Screen & { readonly name: N };

function countdown(props: ViewProps, { leftMs, signedOut, place }: Named<'countdown'>): Parts {
  const { words, format, shown } = props;
  const above = (
    <>
      <Countdown {...props} leftMs={leftMs} />
      {place === null ? null : (
        <Note
          tone="info"
          text={place.position === null ? words.drawAtOpening : words.inRoomBefore(format.number(place.position))}
        />
      )}
      <Note text={shown.note} />
      {signedOut ? null : <Quantity {...props} />}
    </>
  );
  const { title, text } = words.screens.countdown;
  const parts = { title, above, go: { label: words.buttons.notOpen }, hint: text };
  return signedOut ? { ...parts, ...signInParts(props) } : parts;
}

/**
 * Shows the time until the opening. Screen readers do not announce it every second.
 * @param leftMs absent if the time is over; it is still shown to a person who saw it end
 */
function Countdown({
  leftMs = 0,
  hasCountedDown,
  state,
  words,
  format,
}: ViewProps & { readonly leftMs?: number }): JSX.Element | null {
  if (leftMs === 0 && !hasCountedDown) return null;
  const parts = clockParts(leftMs);
  const names =
    parts.days > 0 ? (['days', 'hours', 'minutes', 'seconds'] as const) : (['hours', 'minutes', 'seconds'] as const);
  return (
    <>
      <div class="clock" role="timer" aria-live="off" aria-label={format.spoken(leftMs)}>
        {names.map((name) => (
          <div key={name} class="part" aria-hidden="true">
            <span class="digits">{String(parts[name]).padStart(2, '0')}</span>
            <span class="unit">{words[name]}</span>
          </div>
        ))}
      </div>
      <p class="text when">{words.opensAt(format.when(state.sale?.opensAtMs ?? 0))}</p>
    </>
  );
}

/** Builds the sign-in panel. If the page does not know where buyers sign in, it refers to the shop. */
function signInParts({ words, signInUrl, state }: ViewProps): Pick<Parts, 'go' | 'hint'> {
  const { buttons, screens, toShop } = words;
  const label = state.signInEnded ? buttons.signInAgain : buttons.signIn;
  if (signInUrl === null) return { go: { label }, hint: toShop };
  return { go: { label, href: signInUrl }, hint: screens[state.signInEnded ? 'sign_in_ended' : 'signed_out'].text };
}

const QUANTITY_SHOWN_MAX = 99;

function Quantity({ state, words, page, format }: ViewProps): JSX.Element | null {
  const { sale, purchase } = state;
  const most = Math.min(sale?.limitPerBuyer ?? 1, QUANTITY_SHOWN_MAX);
  if (sale === null || most <= 1) return null;
  const { quantity } = purchase;
  const step = (by: number, label: string, sign: string): JSX.Element => {
    const next = quantity + by;
    const isOff = next < 1 || next > most || purchase.step !== 'ready';
    return (
      <button type="button" aria-label={label} aria-disabled={isOff} onClick={() => !isOff && page.setQuantity(next)}>
        {sign}
      </button>
    );
  };
  return (
    <div class="quantity" role="group" aria-label={words.quantity}>
      <span class="label" aria-hidden="true">
        {words.quantity}
      </span>
      {step(-1, words.fewer, '−')}
      <output aria-live="polite">
        {format.number(quantity)}
        <span class="sr">
          {' '}
          {words.total} {format.price(priceOf(state))}
        </span>
      </output>
      {step(1, words.more, '+')}
    </div>
  );
}

function Place({
  place,
  words,
  format,
}: { readonly place: ShownPlace } & Pick<ViewProps, 'words' | 'format'>): JSX.Element {
  const { position, estimateMs } = place;
  return (
    <div class="place">
      <p class="position">{position === null ? words.placeUnknown : words.place(format.number(position))}</p>
      <p class="text">{estimateMs === null ? words.estimateUnknown : words.estimate(Math.ceil(estimateMs / 60_000))}</p>
    </div>
  );
}

interface TimeLeftProps {
  readonly label: string;
  readonly time: string;
  readonly isTurn?: boolean;
  readonly children?: ComponentChildren;
}

const TimeLeft = ({ label, time, isTurn = false, children }: TimeLeftProps): JSX.Element => (
  <div class={isTurn ? 'time-left turn' : 'time-left'} role="timer" aria-live="off">
    <span class="label">{label}</span> <span class="digits">{time}</span>
    {children}
  </div>
);

/**
 * Codes for a page that takes no cards: payment is not set up, or the shop uses the library of its payment provider.
 */
const PAID_ELSEWHERE = ['payment_not_configured', 'payment_method_needed'];

function toPay(props: ViewProps, { order, leftMs, signedOut }: Named<'to_pay'>): Parts {
  const { words, format, state, page, shown, choices, choose } = props;
  const { buttons } = words;
  const isOver = leftMs <= 0;
  const isFree = !isOver && state.move === null;
  const moving = state.move?.move;
  const isPaidElsewhere = PAID_ELSEWHERE.some((code) => code === state.moveProblem);
  const { title, text } = words.screens[shown.name];
  const tone = isOver || signedOut ? 'calm' : 'good';
  const above = (
    <>
      <TimeLeft label={words.timeToPay} time={format.clock(leftMs)}>
        <Bar part={partLeft(order, leftMs)} />
      </TimeLeft>
      <Receipt {...props} order={order} />
      <Coupons {...props} />
      <Note tone={isPaidElsewhere && !signedOut ? 'info' : 'warn'} text={shown.note} />
    </>
  );
  if (signedOut) return { title, tone, above, ...signInParts(props) };
  const isAsked = choices.isCancelling && isFree;
  const pay: GoProps = {
    id: 'pay',
    label:
      moving === 'pay'
        ? buttons.paying
        : buttons.pay(format.price(order.amountCents - (state.coupon?.discountCents ?? 0))),
    isBusy: moving === 'pay',
    isFinal: true,
    isQuiet: isAsked,
    ...(isFree ? { onPress: () => page.move('pay') } : {}),
  };
  const below = isAsked ? (
    <div class="sure" role="group" aria-labelledby="sure">
      <p class="text" id="sure">
        {words.cancelSure}
      </p>
      <Quiet id="cancel-no" label={buttons.cancelNo} onPress={() => choose({ isCancelling: false })} />
      <Quiet id="cancel-yes" label={buttons.cancelYes} isFinal onPress={() => page.move('cancel')} />
    </div>
  ) : (
    <Quiet
      key="cancel"
      id="cancel"
      label={moving === 'cancel' ? buttons.cancelling : buttons.cancel}
      {...(isFree ? { onPress: () => choose({ isCancelling: true }) } : {})}
    />
  );
  return { title, tone, above, go: isPaidElsewhere ? null : pay, hint: text, below };
}

function Coupons({ state, words, page, format }: ViewProps): JSX.Element | null {
  const { coupons, coupon, move } = state;
  if (coupons.length === 0) return null;
  return (
    <label class="coupon">
      <span class="label">{words.coupon}</span>
      <select
        id="coupon"
        value={coupon?.code ?? ''}
        disabled={move !== null}
        onChange={({ currentTarget }) => page.chooseCoupon(currentTarget.value)}
      >
        <option value="">{words.noCoupon}</option>
        {coupons.map(({ code, discountCents }) => (
          <option key={code} value={code}>
            {`${words.couponTakes(format.price(discountCents))} · ${code}`}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Returns how much of the time to pay is left, from 0 to 1. */
function partLeft({ createdAtMs, expiresAtMs }: OrderView, leftMs: number): number {
  const wholeMs = (expiresAtMs ?? 0) - (createdAtMs ?? 0);
  return wholeMs > 0 ? Math.min(1, Math.max(0, leftMs / wholeMs)) : 0;
}

const Bar = ({ part }: { readonly part: number }): JSX.Element => (
  <span class="bar" aria-hidden="true">
    <span style={{ transform: `scaleX(${part.toFixed(4)})` }} />
  </span>
);

function Receipt({ order, state, words, format }: ViewProps & { readonly order: OrderView }): JSX.Element {
  return (
    <dl class="receipt">
      <div>
        <dt>{state.sale?.title ?? ''}</dt>
        <dd>{words.units(order.quantity)}</dd>
      </div>
      <div>
        <dt>{words.orderNumber}</dt>
        <dd class="id">{order.orderId}</dd>
      </div>
      <div class="sum">
        <dt>{words.total}</dt>
        <dd>{format.price(order.amountCents)}</dd>
      </div>
    </dl>
  );
}
