// Keys makes what the programs of a control plane prove themselves with.
//
//	keys plane FOLDER                     an authority (ca), a server's certificate, and the keys of service accounts
//	keys client FOLDER FILE USER [GROUP…] a user's certificate, signed by the authority in FOLDER
//
// Everything is PEM; a certificate NAME.crt has its key in NAME.key, which only its owner may read.
// Certificates are for tests: the authority's key lies beside them, and all of them end after a year.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	year = 365 * 24 * time.Hour
	// Clocks of two programs on one machine agree; those of a machine that just woke up may go back a little.
	leeway = time.Hour
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "keys:", err)
		os.Exit(1)
	}
}

func run(words []string) error {
	switch {
	case len(words) == 2 && words[0] == "plane":
		return plane(words[1])
	case len(words) >= 4 && words[0] == "client":
		return client(words[1], words[2], pkix.Name{CommonName: words[3], Organization: words[4:]})
	default:
		return fmt.Errorf("usage: keys plane FOLDER | keys client FOLDER FILE USER [GROUP…]")
	}
}

func plane(folder string) error {
	authority := template(pkix.Name{CommonName: "jackfield-test-ca"})
	authority.IsCA = true
	authority.BasicConstraintsValid = true
	authority.KeyUsage |= x509.KeyUsageCertSign
	if err := issue(folder, "ca", authority, nil); err != nil {
		return err
	}
	issuer, err := tls.LoadX509KeyPair(filepath.Join(folder, "ca.crt"), filepath.Join(folder, "ca.key"))
	if err != nil {
		return err
	}
	server := template(pkix.Name{CommonName: "jackfield-test-server"})
	// etcd speaks to itself with the certificate that it shows to others.
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	server.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	server.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	if err := issue(folder, "server", server, &issuer); err != nil {
		return err
	}
	return serviceAccounts(folder)
}

func client(folder, name string, user pkix.Name) error {
	issuer, err := tls.LoadX509KeyPair(filepath.Join(folder, "ca.crt"), filepath.Join(folder, "ca.key"))
	if err != nil {
		return err
	}
	certificate := template(user)
	certificate.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return issue(folder, name, certificate, &issuer)
}

func template(subject pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject:   subject,
		NotBefore: now.Add(-leeway),
		NotAfter:  now.Add(year),
		KeyUsage:  x509.KeyUsageDigitalSignature,
	}
}

// issue signs a certificate for a new key and writes both; without an issuer the certificate signs itself.
func issue(folder, name string, certificate *x509.Certificate, issuer *tls.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	certificate.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return err
	}
	parent, signer := certificate, any(key)
	if issuer != nil {
		parent, signer = issuer.Leaf, issuer.PrivateKey
	}
	signed, err := x509.CreateCertificate(rand.Reader, certificate, parent, &key.PublicKey, signer)
	if err != nil {
		return err
	}
	if err := writeKey(folder, name, key); err != nil {
		return err
	}
	return write(filepath.Join(folder, name+".crt"), "CERTIFICATE", signed, 0o644)
}

func serviceAccounts(folder string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	if err := writeKey(folder, "service-accounts", key); err != nil {
		return err
	}
	return write(filepath.Join(folder, "service-accounts.pub"), "PUBLIC KEY", public, 0o644)
}

func writeKey(folder, name string, key *ecdsa.PrivateKey) error {
	data, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return write(filepath.Join(folder, name+".key"), "EC PRIVATE KEY", data, 0o600)
}

func write(path, kind string, data []byte, mode os.FileMode) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), mode)
}
