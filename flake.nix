{
  description = "mashbox: an LLM server for your own machine";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-26.05";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" ];
      forEachSystem = build: nixpkgs.lib.genAttrs systems (system: build nixpkgs.legacyPackages.${system});
    in
    {
      packages = forEachSystem (pkgs: rec {
        mashbox = pkgs.callPackage ./nix/package.nix { };
        default = mashbox;
      });

      apps = forEachSystem (pkgs: rec {
        mashbox = {
          type = "app";
          program = "${self.packages.${pkgs.system}.mashbox}/bin/mashbox";
        };
        default = mashbox;
      });

      devShells = forEachSystem (pkgs: {
        default = pkgs.mkShell {
          packages = [ pkgs.nodejs_24 pkgs.cmake pkgs.gnumake pkgs.gcc pkgs.gdb pkgs.python3 ];
        };
      });

      checks = forEachSystem (pkgs: {
        package = self.packages.${pkgs.system}.mashbox;
        help = pkgs.runCommand "mashbox-help" { } ''
          ${self.packages.${pkgs.system}.mashbox}/bin/mashbox --help > $out
        '';
      });
    };
}
