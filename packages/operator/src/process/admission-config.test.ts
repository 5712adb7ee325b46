import { describe, expect, it } from 'vitest'
import { AdmissionConfig, webhookServer } from './admission-config.ts'

const namesOf = (settings: object) =>
  webhookServer(AdmissionConfig.parse({ address: ':9443', ...settings }), 'seamark', { crds: [] }).certificate

describe('the certificate of the webhooks', () => {
  it('is for the Service, the names that are set, and the host of the URL', () => {
    expect(namesOf({})).toMatchObject({ dnsNames: ['seamark-admission.seamark.svc'] })
    expect(namesOf({ dnsNames: ['hooks.example.com', '192.0.2.1'], url: 'https://[2001:db8::1]:9443' })).toMatchObject({
      dnsNames: ['seamark-admission.seamark.svc', 'hooks.example.com', '192.0.2.1', '2001:db8::1'],
    })
    expect(namesOf({ dnsNames: ['hooks.example.com'], url: 'https://hooks.example.com' })).toMatchObject({
      dnsNames: ['seamark-admission.seamark.svc', 'hooks.example.com'],
    })
  })

  it.each(['', 'hooks.example.com:9443', 'https://hooks.example.com', 'a b'])('is refused for %j', (name) => {
    expect(AdmissionConfig.safeParse({ dnsNames: [name] }).success).toBe(false)
  })
})
