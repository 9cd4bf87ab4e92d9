/* P-256 by OpenSSL for the stand-in of CryptoKit. Every function returns the bytes written, or 0 when it failed. */
#ifndef SOFTWARE_KEY_H
#define SOFTWARE_KEY_H
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <openssl/x509.h>

static inline size_t software_key_make(unsigned char *der, size_t room) {
  EVP_PKEY *key = EVP_EC_gen("P-256");
  if (key == NULL) return 0;
  int length = i2d_PrivateKey(key, NULL);
  size_t written = 0;
  if (length > 0 && (size_t)length <= room) written = (size_t)i2d_PrivateKey(key, &der);
  EVP_PKEY_free(key);
  return written;
}

static inline EVP_PKEY *software_key_read(const unsigned char *der, size_t length) {
  return d2i_PrivateKey(EVP_PKEY_EC, NULL, &der, (long)length);
}

/* The last 65 bytes of the SPKI encoding are the uncompressed point. */
static inline size_t software_key_public(const unsigned char *der, size_t length, unsigned char *point) {
  EVP_PKEY *key = software_key_read(der, length);
  if (key == NULL) return 0;
  unsigned char *spki = NULL;
  int size = i2d_PUBKEY(key, &spki);
  EVP_PKEY_free(key);
  if (size != 91) return 0;
  for (int i = 0; i < 65; i++) point[i] = spki[26 + i];
  OPENSSL_free(spki);
  return 65;
}

static inline size_t software_key_sign(const unsigned char *der, size_t length, const unsigned char *message, size_t size,
                                       unsigned char *signature, size_t room) {
  EVP_PKEY *key = software_key_read(der, length);
  EVP_MD_CTX *context = EVP_MD_CTX_new();
  size_t written = room;
  if (key == NULL || context == NULL || EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) != 1 ||
      EVP_DigestSign(context, signature, &written, message, size) != 1)
    written = 0;
  EVP_MD_CTX_free(context);
  EVP_PKEY_free(key);
  return written;
}

static inline size_t software_sha256(const unsigned char *message, size_t size, unsigned char *digest) {
  return SHA256(message, size, digest) == NULL ? 0 : 32;
}
#endif
