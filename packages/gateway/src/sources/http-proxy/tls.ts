/** TLS of a root HTTPProxy: termination with versions and client certificates, or passthrough. */
import type { HTTPProxy, VirtualHost } from '@seamark/kube/contour'
import type { Immutable } from '@seamark/kube/object'
import type { Objects } from '../../draft/input.ts'
import { findCaBundle, findCertificate, secretKey, STILL_SERVED } from '../../draft/secrets.ts'
import type { DraftSink } from '../../draft/step.ts'
import type { ClientValidation, TlsTermination, TlsVersion } from '../../ir/model.ts'
import type { ProxyVerdict } from './verdict.ts'

/** `invalid`: the host must not be served, neither over HTTPS nor over HTTP. */
export function readTls(
  draft: DraftSink,
  objects: Objects,
  proxy: Immutable<HTTPProxy>,
  { tls }: Immutable<VirtualHost>,
  verdict: ProxyVerdict,
): TlsTermination | 'passthrough' | 'invalid' | undefined {
  if (tls === undefined || tls === null) return undefined
  const { namespace = '' } = proxy.metadata
  const { secretName = '', passthrough = false, clientValidation } = tls
  const fail = (reason: string, message: string): 'invalid' => {
    verdict.error('TLSError', reason, message)
    return 'invalid'
  }
  if (secretName !== '' && passthrough)
    return fail('TLSConfigNotValid', 'Spec.VirtualHost.TLS: both Passthrough and SecretName were specified')
  if (secretName === '' && !passthrough)
    return fail('TLSConfigNotValid', 'Spec.VirtualHost.TLS: neither Passthrough nor SecretName were specified')
  if (passthrough && clientValidation !== undefined)
    return fail(
      'TLSIncompatibleFeatures',
      'Spec.VirtualHost.TLS passthrough cannot be combined with tls.clientValidation',
    )
  if (tls.enableFallbackCertificate === true)
    return fail(
      'FallbackNotPresent',
      'Spec.Virtualhost.TLS enabled fallback but fallback certificates are not supported',
    )
  if (passthrough) return 'passthrough'
  const found = findCertificate(objects, secretKey(secretName, namespace), namespace)
  const { certificate, fault } = found
  if (found.isForbidden === true)
    return fail(
      'DelegationNotPermitted',
      `Spec.VirtualHost.TLS Secret "${secretName}" certificate delegation not permitted`,
    )
  const invalid = `Spec.VirtualHost.TLS Secret "${secretName}" is invalid: ${fault ?? ''}`
  if (certificate === undefined) return fail('SecretNotValid', invalid)
  if (fault !== undefined) verdict.error('TLSError', 'SecretNotValid', `${invalid}; ${STILL_SERVED}`)
  const minVersion: TlsVersion = tls.minimumProtocolVersion === '1.3' ? '1.3' : '1.2'
  const maxVersion: TlsVersion = tls.maximumProtocolVersion === '1.2' ? '1.2' : '1.3'
  if (maxVersion < minVersion)
    return fail(
      'TLSConfigNotValid',
      'Spec.Virtualhost.TLS the minimum protocol version is greater than the maximum protocol version',
    )
  const validation = readClientValidation(objects, tls, namespace, fail)
  if (validation === 'invalid') return validation
  return {
    certificate: draft.addCertificate(certificate),
    minVersion,
    maxVersion,
    ...(validation !== undefined && { clientValidation: validation }),
  }
}

function readClientValidation(
  objects: Objects,
  { clientValidation }: NonNullable<Immutable<VirtualHost['tls']>>,
  namespace: string,
  fail: (reason: string, message: string) => 'invalid',
): ClientValidation | 'invalid' | undefined {
  if (clientValidation === undefined) return undefined
  const { caSecret = '', skipClientCertValidation = false, optionalClientCertificate = false } = clientValidation
  if (clientValidation.crlSecret !== undefined && clientValidation.crlSecret !== '')
    return fail('ClientValidationInvalid', 'Spec.VirtualHost.TLS client validation: crlSecret is not supported')
  if (skipClientCertValidation) return { ca: '', isOptional: optionalClientCertificate }
  if (caSecret === '')
    return fail(
      'ClientValidationInvalid',
      'Spec.VirtualHost.TLS client validation is invalid: CA Secret must be specified',
    )
  const key = secretKey(caSecret, namespace)
  const found = findCaBundle(objects, key, namespace)
  if ('ca' in found) return { ca: found.ca, isOptional: optionalClientCertificate }
  return found.isForbidden === true
    ? fail('DelegationNotPermitted', `Spec.VirtualHost.TLS CA Secret "${caSecret}" is invalid: ${found.fault}`)
    : fail(
        'ClientValidationInvalid',
        `Spec.VirtualHost.TLS client validation is invalid: invalid CA Secret "${key}": ${found.fault}`,
      )
}
