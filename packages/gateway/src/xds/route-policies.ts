/** Policies of a route in Envoy's terms: conditions, headers, CORS, rate limits, retries. */
import type { Cors, HashSource, HeaderMatch, HeaderMutation, Match, QueryMatch, RateLimit, Retry } from '../ir/model.ts'
import { durationOf, Enums, packAny, type Any, type Message } from './protobuf.ts'

export const CORS_FILTER = 'envoy.filters.http.cors'
export const RATE_LIMIT_FILTER = 'envoy.filters.http.local_ratelimit'

type RouteMatch = Message<'envoy.config.route.v3.RouteMatch'>
type StringMatcher = Message<'envoy.type.matcher.v3.StringMatcher'>
type HeaderOption = Message<'envoy.config.core.v3.HeaderValueOption'>

const { HUNDRED, MILLION } = Enums.FractionalPercentDenominatorType
const ALWAYS = { default_value: { numerator: 100, denominator: HUNDRED } }

export function matchOf({ path, method, headers, query }: Match): RouteMatch {
  const conditions = [
    ...(method === undefined ? [] : [{ name: ':method', string_match: { exact: method } }]),
    ...headers.map(headerMatcher),
  ]
  return {
    ...pathMatcher(path),
    ...(conditions.length > 0 && { headers: conditions }),
    ...(query.length > 0 && { query_parameters: query.map(queryMatcher) }),
  }
}

/** The same requests, but only this share of them. */
export function withShare(match: RouteMatch, share: number): RouteMatch {
  const numerator = Math.round(share * 1_000_000)
  return { ...match, runtime_fraction: { default_value: { numerator, denominator: MILLION } } }
}

function pathMatcher({ kind, value }: Match['path']): RouteMatch {
  switch (kind) {
    case 'exact':
      return { path: value }
    case 'prefix':
      return { prefix: value }
    case 'regex':
      return { safe_regex: { regex: value } }
    case 'segment':
      if (value === '/') return { prefix: value }
      // After paths are normalised no other path continues such a value with a slash.
      if (value.endsWith('/')) return { path: value }
      // Envoy rejects these characters here, and with them the routes of every other object.
      return /[?#]/.test(value)
        ? { safe_regex: { regex: `${escapeRegex(value)}(/.*)?` } }
        : { path_separated_prefix: value }
  }
}

/** Matches this text. */
export function escapeRegex(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9/_-]/g, String.raw`\$&`)
}

function headerMatcher(match: HeaderMatch): Message<'envoy.config.route.v3.HeaderMatcher'> {
  const { name, kind, isInverted = false, isMissingEmpty = false } = match
  if (kind === 'present') return { name, present_match: true, invert_match: isInverted }
  return {
    name,
    string_match: stringMatcher(match),
    ...(isInverted && { invert_match: true, treat_missing_header_as_empty: isMissingEmpty }),
  }
}

function queryMatcher(match: QueryMatch): Message<'envoy.config.route.v3.QueryParameterMatcher'> {
  return match.kind === 'present'
    ? { name: match.name, present_match: true }
    : { name: match.name, string_match: stringMatcher(match) }
}

function stringMatcher({ kind, value, ignoresCase = false }: HeaderMatch | QueryMatch): StringMatcher {
  // A regular expression itself defines whether case counts; Envoy refuses the flag beside it.
  if (kind === 'regex') return { safe_regex: { regex: value } }
  const flag = ignoresCase ? { ignore_case: true } : {}
  switch (kind) {
    case 'exact':
    case 'present':
      return { exact: value, ...flag }
    case 'prefix':
      return { prefix: value, ...flag }
    case 'suffix':
      return { suffix: value, ...flag }
    case 'contains':
      return { contains: value, ...flag }
  }
}

interface HeaderFields {
  readonly request_headers_to_add?: readonly HeaderOption[]
  readonly request_headers_to_remove?: readonly string[]
  readonly response_headers_to_add?: readonly HeaderOption[]
  readonly response_headers_to_remove?: readonly string[]
}

export function headerFields(request: HeaderMutation | undefined, response: HeaderMutation | undefined): HeaderFields {
  const [requestAdds, responseAdds] = [additions(request), additions(response)]
  return {
    ...(requestAdds.length > 0 && { request_headers_to_add: requestAdds }),
    ...(request !== undefined && request.remove.length > 0 && { request_headers_to_remove: request.remove }),
    ...(responseAdds.length > 0 && { response_headers_to_add: responseAdds }),
    ...(response !== undefined && response.remove.length > 0 && { response_headers_to_remove: response.remove }),
  }
}

const { OVERWRITE_IF_EXISTS_OR_ADD, APPEND_IF_EXISTS_OR_ADD } = Enums.HeaderValueOptionHeaderAppendAction

function additions(mutation: HeaderMutation | undefined): HeaderOption[] {
  if (mutation === undefined) return []
  return [
    ...mutation.set.map(({ name, value }) => ({
      header: { key: name, value },
      append_action: OVERWRITE_IF_EXISTS_OR_ADD,
    })),
    ...mutation.add.map(({ name, value }) => ({
      header: { key: name, value },
      append_action: APPEND_IF_EXISTS_OR_ADD,
    })),
  ]
}

export function corsPolicy(cors: Cors): Any {
  const { allowOrigins, allowMethods, allowHeaders, exposeHeaders, maxAgeSeconds } = cors
  return packAny('envoy.extensions.filters.http.cors.v3.CorsPolicy', {
    allow_origin_string_match: allowOrigins.map(({ kind, value }) =>
      kind === 'exact' ? { exact: value } : { safe_regex: { regex: value } },
    ),
    allow_methods: allowMethods.join(','),
    ...(allowHeaders.length > 0 && { allow_headers: allowHeaders.join(',') }),
    ...(exposeHeaders.length > 0 && { expose_headers: exposeHeaders.join(',') }),
    ...(maxAgeSeconds !== undefined && { max_age: String(maxAgeSeconds) }),
    ...(cors.allowCredentials && { allow_credentials: { value: true } }),
  })
}

export function rateLimitPolicy({ tokens, burst, intervalMs, status, headers }: RateLimit): Any {
  return packAny('envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit', {
    stat_prefix: 'local',
    status: { code: status as Message<'envoy.type.v3.HttpStatus'>['code'] & number },
    token_bucket: {
      max_tokens: burst,
      tokens_per_fill: { value: tokens },
      fill_interval: durationOf(intervalMs),
    },
    filter_enabled: ALWAYS,
    filter_enforced: ALWAYS,
    response_headers_to_add: headers.map(({ name, value }) => ({
      header: { key: name, value },
      append_action: OVERWRITE_IF_EXISTS_OR_ADD,
    })),
  })
}

export function retryPolicy({
  count,
  on,
  statusCodes,
  perTryTimeoutMs,
}: Retry): Message<'envoy.config.route.v3.RetryPolicy'> {
  return {
    retry_on: on.join(','),
    num_retries: { value: count },
    ...(statusCodes.length > 0 && { retriable_status_codes: statusCodes }),
    ...(perTryTimeoutMs !== undefined && { per_try_timeout: durationOf(perTryTimeoutMs) }),
  }
}

export function hashPolicy(source: HashSource): Message<'envoy.config.route.v3.RouteAction.HashPolicy'> {
  switch (source.kind) {
    case 'sourceIp':
      return { connection_properties: { source_ip: true } }
    case 'header':
      return { header: { header_name: source.name } }
    case 'query':
      return { query_parameter: { name: source.name } }
    case 'cookie':
      // A duration of 0 makes Envoy set the cookie, for the session of the browser.
      return { cookie: { name: source.name, ttl: durationOf(0), path: '/' } }
  }
}
